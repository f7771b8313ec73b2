#include "sparsight/attacks/fab/fab.h"

#include <algorithm>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/random_start.h"
#include "sparsight/attacks/routed/objective.h"
#include "sparsight/attacks/target_classes.h"

namespace sparsight {

void FabOptions::declare_runs(OptionSet& set) {
  set.integer("steps", &steps, {1, 1000000}, "number of steps of a run");
  set.integer("restarts", &restarts, {1, 10000}, "number of runs; all but the first start at random");
  set.real("max_pull", &max_pull, {0, 1}, "largest weight of the image's projection in a step (alpha_max)");
  set.real("overshoot", &overshoot, {1, 10}, "length of a step, where 1 ends on the boundary (eta)");
  set.real("backward", &backward, {0, 1}, "share of the distance to the image that is kept after a success (beta)");
  set.flag("distances", &distances,
           "report the smallest perturbations also beyond epsilon, and make every run on every image: a later one may "
           "come closer");
}

void FabOptions::declare(OptionSet& set) {
  declare_runs(set);
  goal.declare(set);
}

void FabTargetedOptions::declare(OptionSet& set) {
  declare_runs(set);
  set.integer("targets", &targets, {1, 1000000},
              "number of classes that images are moved to, the second most likely first; at most all others");
}

Fab::Fab(const FabOptions& options, AttackContext context)
    : Attack(std::move(context)), options_(options), targets_(0) {}

Fab::Fab(const FabTargetedOptions& options, AttackContext context)
    : Attack(std::move(context)), options_(options), targets_(options.targets) {}

Perturbation Fab::perturb_and_measure(AttackedModel& model, const AttackBatch& batch) const {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const std::string name = targets_ > 0 ? "fab_t" : "fab";
  const double epsilon = context().threat.epsilon;
  const Objective clean{.loss = attack_loss::margin, .passes = model.randomised() ? kVerdictPasses : 1};
  const AttackEvaluation at_clean = evaluate_loss(model, clean, batch, batch.pixels, first_step(name + ".clean", 0));
  const at::Tensor targets = target_classes(at_clean.logits, std::max<int64_t>(targets_, 1), batch.labels.label);
  const FabRunOptions options{options_.steps, options_.max_pull, options_.overshoot, options_.backward};
  const at::Tensor withstands = withstands_attack(at_clean.logits, batch.labels);
  Perturbation found{batch.pixels, at::zeros({withstands.size(0)}, at::kDouble).masked_fill(withstands, kNone)};
  const SavedLoop loop(context().saver, first_step(name + ".runs", 0), {&found.pixels, &found.distance});
  const int64_t runs = targets.size(1) * options_.restarts;
  for (int64_t number = loop.done(runs); number < runs; ++number) {
    const int64_t target = number / options_.restarts, restart = number % options_.restarts;
    const at::Tensor open = options_.distances ? withstands : found.distance > epsilon;
    const at::Tensor index = images_to_attack(open, model.coupled());
    if (index.size(0) == 0) break;
    const AttackBatch attacked = (targets_ > 0 ? with_target(batch, targets, target) : batch).select(index);
    const at::Tensor start =
        restart == 0 ? attacked.pixels : random_start(attacked, context(), StartKind::surface, name, number, 0.5);
    const FabRun run = run_fab(model, attacked, context(), options, start, first_step(name, restart, target));
    const at::Tensor before = found.distance.index_select(0, index), pixels = found.pixels.index_select(0, index);
    const at::Tensor closer = open.index_select(0, index) & (run.distance < before);
    found.distance = found.distance.index_copy(0, index, at::where(closer, run.distance, before));
    found.pixels =
        found.pixels.index_copy(0, index, choose_images(closer & (run.distance <= epsilon), run.closest, pixels));
    loop.mark(number + 1);
  }
  if (!options_.distances) found.distance = found.distance.masked_fill(found.distance > epsilon, kNone);
  return found;
}

}  // namespace sparsight
