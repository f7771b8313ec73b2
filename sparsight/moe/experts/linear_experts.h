// Experts that are one linear layer. Letters: moe/axes.md.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/experts/expert_parameters.h"

namespace sparsight {

struct LinearExpertsOptions : KindOptions {
  bool bias = true;
  void declare(OptionSet& set);
};

class LinearExperts : public Experts, public Initialized {
 public:
  LinearExperts(const LinearExpertsOptions& options, const ExpertShape& shape);
  void initialize(const InitRandom& random) override;
  std::unique_ptr<engine::Experts> compile(const engine::WeightForm& form) const override;
  ExpertTensors expert_tensors() const override;
  Cost cost(const ExpertUse& use) const override;

 protected:
  // x W1 + b1
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) override;

 private:
  WeightInit init_;
  ExpertLinear layer_;  // w1 [E,D,D], b1 [E,D]
};

}  // namespace sparsight
