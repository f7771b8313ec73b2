// FAB as an attack within epsilon: it succeeds where the closest misclassified point that it finds is near enough.
// Targeted (FAB-T of AutoAttack) it goes towards one class after the other.
#pragma once

#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/fab/fab_run.h"

namespace sparsight {

struct FabOptions {
  int64_t steps = 100;
  int64_t restarts = 1;
  double max_pull = 0.1;
  double overshoot = 1.05;
  double backward = 0.9;
  TargetOption goal = {};
  bool distances = false;
  void declare(OptionSet& set);

 protected:
  void declare_runs(OptionSet& set);  // all but the target
};

struct FabTargetedOptions : FabOptions {
  int64_t targets = 9;
  void declare(OptionSet& set);
};

// An image that no point within epsilon fools is returned as it is. The first run starts at the image, further ones at
// random points within epsilon / 2, on the images that still withstand the attack; with options.distances on all that
// withstand it as they are, since a further run may come closer. Without it a distance beyond epsilon counts as
// infinite. With a target it looks for the closest point that the model takes for it, along the difference between the
// target's logit and the largest other one.
class Fab : public Attack {
 public:
  Fab(const FabOptions& options, AttackContext context);
  Fab(const FabTargetedOptions& options, AttackContext context);
  const TargetOption* target() const override { return targets_ > 0 ? nullptr : &options_.goal; }
  bool takes_norm(Norm) const override { return true; }
  bool measures_distances() const override { return true; }

 protected:
  at::Tensor perturb(AttackedModel& model, const AttackBatch& batch) const override {
    return perturb_and_measure(model, batch).pixels;
  }
  Perturbation perturb_and_measure(AttackedModel& model, const AttackBatch& batch) const override;

 private:
  FabOptions options_;
  int64_t targets_;  // how many classes it goes through; 0: it is not fab_t
};

}  // namespace sparsight
