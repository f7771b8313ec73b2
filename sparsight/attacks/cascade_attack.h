// The cascade under the interface of a single attack, so that it can be named wherever an attack can. run_cascade()
// says more.
#pragma once

#include "sparsight/attacks/cascade.h"

namespace sparsight {

struct CascadeOptions {
  std::string version = "standard";
  int64_t batch_size = 250;
  void declare(OptionSet& set);
};

class CascadeAttack : public Attack {
 public:
  CascadeAttack(const CascadeOptions& options, AttackContext context) : Attack(std::move(context)), options_(options) {}

  bool takes_norm(Norm norm) const override;

 protected:
  at::Tensor perturb(AttackedModel& model, const AttackBatch& batch) const override;

 private:
  CascadeOptions options_;
};

}  // namespace sparsight
