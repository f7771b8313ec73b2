#include "sparsight/attacks/fgsm.h"

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/projection.h"

namespace sparsight {

void FgsmOptions::declare(OptionSet& set) {
  set.flag("clip", &clip, "clip to the range of pixels");
  objective.declare(set);
  goal.declare(set);
}

Fgsm::Fgsm(const FgsmOptions& options, AttackContext context)
    : Attack(std::move(context)), options_(options), objective_(make_objective(options.objective)) {}

at::Tensor Fgsm::perturb(AttackedModel& model, const AttackBatch& batch) const {
  const ThreatModel& threat = context().threat;
  const Projection project(batch.pixels, threat);
  const at::Tensor gradient =
      evaluate_objective(model, objective_, batch, batch.pixels, first_step("fgsm", 0)).gradient;
  const at::Tensor moved = batch.pixels + threat.epsilon * ascent_direction(gradient, threat.norm);
  return options_.clip ? project(moved) : project.to_ball(moved);  // the ball only undoes rounding
}

}  // namespace sparsight
