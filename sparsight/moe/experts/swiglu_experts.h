// Gated experts: SwiGLU (Shazeer 2020, "GLU Variants Improve Transformer"), as in DeepSeek and Mixtral.
// Letters: moe/axes.md.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/experts/expert_parameters.h"

namespace sparsight {

struct SwigluExpertsOptions : KindOptions {
  bool bias = false;
  void declare(OptionSet& set);
};

// [g, u] = x W1 + b1 (two halves of F);  y = (silu(g) * u) W2 + b2. One GEMM for both halves, in the
// layout of timm's SwiGLUPacked.
class SwigluExperts : public Experts, public Initialized {
 public:
  SwigluExperts(const SwigluExpertsOptions& options, const ExpertShape& shape);
  void initialize(const InitRandom& random) override;
  std::unique_ptr<engine::Experts> compile(const engine::WeightForm& form) const override;
  ExpertTensors expert_tensors() const override;
  Cost cost(const ExpertUse& use) const override;

 protected:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) override;

 private:
  WeightInit init_;
  ExpertLinear in_, out_;  // w1 [E,D,2F], b1 [E,2F]; w2 [E,F,D], b2 [E,D]
};

}  // namespace sparsight
