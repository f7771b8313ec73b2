// The fast gradient sign method (Goodfellow et al. 2015; equation 4 of Puigcerver et al. 2022): one step of length
// epsilon. For l2 the fast gradient method: along the gradient.
#pragma once

#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/routed/objective_options.h"

namespace sparsight {

struct FgsmOptions {
  bool clip = true;
  ObjectiveOptions objective = {};
  TargetOption goal = {};
  void declare(OptionSet& set);
};

// x' = x + epsilon * sign(gradient), or x + epsilon * g / ||g||. The result may have a lower loss than x.
class Fgsm : public Attack {
 public:
  Fgsm(const FgsmOptions& options, AttackContext context);

  bool clips_pixels() const override { return options_.clip; }
  bool couples_images() const override { return objective_.couples_images(); }
  bool takes_several_labels() const override { return true; }
  const TargetOption* target() const override { return &options_.goal; }

 protected:
  at::Tensor perturb(AttackedModel& model, const AttackBatch& batch) const override;

 private:
  FgsmOptions options_;
  Objective objective_;
};

}  // namespace sparsight
