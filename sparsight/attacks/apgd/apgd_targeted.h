// Targeted AutoPGD (APGD-T of AutoAttack): runs on the targeted dlr loss, towards one class after the other, on the
// images that are still classified correctly.
#pragma once

#include "sparsight/attacks/apgd/apgd_run.h"
#include "sparsight/attacks/attack.h"

namespace sparsight {

struct ApgdTargetedOptions {
  int64_t steps = 100;
  int64_t targets = 9;
  int64_t restarts = 1;
  double min_growth = 0.75;
  std::string start = "surface";
  int64_t passes = 1;
  void declare(OptionSet& set);
};

class ApgdTargeted : public Attack {
 public:
  ApgdTargeted(const ApgdTargetedOptions& options, AttackContext context)
      : Attack(std::move(context)), options_(options) {}

  bool takes_norm(Norm) const override { return true; }

 protected:
  at::Tensor perturb(AttackedModel& model, const AttackBatch& batch) const override;

 private:
  ApgdTargetedOptions options_;
};

}  // namespace sparsight
