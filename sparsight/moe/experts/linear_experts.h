// Experts that are one linear map. Letters: moe/axes.md.
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
  at::Tensor forward(const at::Tensor& rows, const at::Tensor& offsets) override;  // x W1 + b1
  void initialize(const InitRandom& random) override;

 private:
  ExpertLinear layer_;  // w1 [E,D,D], b1 [E,D]
};

}  // namespace sparsight
