// AutoPGD with restarts (apgd_run.h is one run): on cross entropy it is APGD-CE of AutoAttack, on dlr APGD-DLR.
#pragma once

#include "sparsight/attacks/apgd/apgd_run.h"
#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/routed/objective_options.h"

namespace sparsight {

struct ApgdOptions {
  int64_t steps = 100;
  int64_t restarts = 1;
  double min_growth = 0.75;
  std::string start = "surface";
  std::string keep = "fooled";
  ObjectiveOptions objective = {};
  TargetOption goal = {};
  void declare(OptionSet& set);
};

// keep = "fooled": a restart runs on the images that still withstand the attack. An image that does not is returned as
// it is; one that no run fooled, at its point of the largest loss.
// keep = "loss": every run on every image; the point of the largest loss.
class Apgd : public Attack {
 public:
  Apgd(const ApgdOptions& options, AttackContext context);
  bool couples_images() const override { return objective_.couples_images(); }
  bool takes_several_labels() const override { return true; }
  const TargetOption* target() const override { return &options_.goal; }
  bool takes_norm(Norm) const override { return true; }

 protected:
  at::Tensor perturb(AttackedModel& model, const AttackBatch& batch) const override;

 private:
  ApgdRun run_once(AttackedModel& model, const AttackBatch& batch, int64_t restart) const;

  ApgdOptions options_;
  Objective objective_;
};

}  // namespace sparsight
