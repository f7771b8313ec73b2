#include "sparsight/attacks/apgd/apgd.h"

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/random_start.h"
#include "sparsight/attacks/strongest.h"

namespace sparsight {

void ApgdOptions::declare(OptionSet& set) {
  set.integer("steps", &steps, {1, 1000000}, "number of steps of a run");
  set.integer("restarts", &restarts, {1, 10000}, "number of runs, each from another random point");
  set.real("min_growth", &min_growth, {0, 1},
           "the step is halved unless the loss grew in more than this share of the steps (rho)");
  set.choice(
      "start", &start, {"surface", "ball", "none"},
      "where a run starts: on the surface of the ball (linf: the largest change is epsilon), at a uniform point of "
      "it, or at the image");
  set.choice("keep", &keep, {"fooled", "loss"},
             "which point is returned: a misclassified one, if there is any, or that of the largest loss");
  objective.declare(set);
  goal.declare(set);
}

Apgd::Apgd(const ApgdOptions& options, AttackContext context)
    : Attack(std::move(context)), options_(options), objective_(make_objective(options.objective)) {}

ApgdRun Apgd::run_once(AttackedModel& model, const AttackBatch& batch, int64_t restart) const {
  const std::string name = "apgd." + chosen_attack_loss(options_.objective.loss, batch.labels.several());
  const StartKind kind = options_.start == "ball" ? StartKind::ball : StartKind::surface;
  const at::Tensor start =
      options_.start == "none" ? batch.pixels : random_start(batch, context(), kind, name, restart);
  const ApgdRunOptions run{.iterations = options_.steps, .min_growth = options_.min_growth};
  return run_apgd(model, objective_, batch, context(), run, start, first_step(name, restart));
}

at::Tensor Apgd::perturb(AttackedModel& model, const AttackBatch& batch) const {
  if (options_.keep == "loss") {
    ApgdRun best;
    const SavedLoop loop(context().saver, first_step("apgd.runs", 0), {&best.best, &best.best_loss});
    for (int64_t restart = loop.done(options_.restarts); restart < options_.restarts; ++restart) {
      const ApgdRun run = run_once(model, batch, restart);
      if (restart == 0) best = run;
      const at::Tensor better = run.best_loss > best.best_loss;
      best.best = choose_images(better, run.best, best.best);
      best.best_loss = choose_images(better, run.best_loss, best.best_loss);
      loop.mark(restart + 1);
    }
    return best.best;
  }
  Strongest strongest(batch.pixels, still_withstands(model, batch, batch.pixels, first_step("apgd.clean", 0)));
  const SavedLoop loop(context().saver, first_step("apgd.runs", 0), strongest.state());
  for (int64_t restart = loop.done(options_.restarts); restart < options_.restarts; ++restart) {
    const at::Tensor index = images_to_attack(strongest.robust(), objective_.coupled(model));
    if (index.size(0) == 0) break;
    const ApgdRun run = run_once(model, batch.select(index), restart);
    strongest.offer(index, run.last_fooled, run.best_loss, run.fooled);
    loop.mark(restart + 1);
  }
  return strongest.pixels();
}

}  // namespace sparsight
