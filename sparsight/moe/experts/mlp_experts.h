// Experts that are two-layer perceptrons: the usual ones. Letters: moe/axes.md.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/experts/moe_mlp.h"
#include "sparsight/nn/init.h"

namespace sparsight {

struct MlpExpertsOptions {
  void declare(OptionSet&) {}  // shape and activation come from [moe]
};

class MlpExperts : public Experts, public Initialized {
 public:
  MlpExperts(const MlpExpertsOptions& options, const ExpertShape& shape);
  at::Tensor forward(const at::Tensor& rows, const at::Tensor& offsets) override;
  void initialize(const InitRandom& random) override;  // weights N(0, 0.02²), biases 0

  MoeMlpWeights weights;  // w1 [E,D,F], b1 [E,F], w2 [E,F,D], b2 [E,D]

 private:
  Activation activation_;
};

}  // namespace sparsight
