#include "sparsight/attacks/apgd/apgd_targeted.h"

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/random_start.h"
#include "sparsight/attacks/strongest.h"
#include "sparsight/attacks/target_classes.h"

namespace sparsight {

void ApgdTargetedOptions::declare(OptionSet& set) {
  set.integer("steps", &steps, {1, 1000000}, "number of steps of a run");
  set.integer("targets", &targets, {1, 1000000},
              "number of classes that images are moved to, the second most likely first; at most all others");
  set.integer("restarts", &restarts, {1, 10000}, "number of runs for each class");
  set.real("min_growth", &min_growth, {0, 1},
           "the step is halved unless the loss grew in more than this share of the steps (rho)");
  set.choice("start", &start, {"surface", "none"},
             "where a run starts: on the surface of the ball, or at the image (for comparisons with other programs)");
  set.integer("passes", &passes, {1, 10000},
              "passes of a model with noise whose losses and gradients are averaged at each step (EOT)");
}

at::Tensor ApgdTargeted::perturb(AttackedModel& model, const AttackBatch& batch) const {
  const Objective objective{.loss = attack_loss::targeted_dlr, .passes = options_.passes};
  const ApgdRunOptions options{.iterations = options_.steps, .min_growth = options_.min_growth};
  const Objective clean{.passes = model.randomised() ? kVerdictPasses : 1};
  const AttackEvaluation at_clean = evaluate_loss(model, clean, batch, batch.pixels, first_step("apgd_t.clean", 0));
  const at::Tensor targets = target_classes(at_clean.logits, options_.targets, batch.labels.label);
  Strongest strongest(batch.pixels, classified_correctly(at_clean.logits, batch.labels.label));
  const SavedLoop loop(context().saver, first_step("apgd_t.runs", 0), strongest.state());
  const int64_t runs = targets.size(1) * options_.restarts;
  for (int64_t number = loop.done(runs); number < runs; ++number) {
    const int64_t target = number / options_.restarts, restart = number % options_.restarts;
    const at::Tensor index = images_to_attack(strongest.robust(), model.coupled());
    if (index.size(0) == 0) return strongest.pixels();
    const AttackBatch attacked = with_target(batch, targets, target).select(index);
    const at::Tensor start = options_.start == "none"
                                 ? attacked.pixels
                                 : random_start(attacked, context(), StartKind::surface, "apgd_t", number);
    const ApgdRun run =
        run_apgd(model, objective, attacked, context(), options, start, first_step("apgd_t", restart, target));
    strongest.offer(index, run.last_fooled, run.best_loss, run.fooled);
    loop.mark(number + 1);
  }
  return strongest.pixels();
}

}  // namespace sparsight
