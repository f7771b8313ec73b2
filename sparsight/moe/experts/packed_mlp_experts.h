// MLP experts for inference only: weights packed in the order in which the kernels read them, in fp32, bf16 or int8
// (ops/packed_experts.h). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/experts.h"
#include "sparsight/ops/packed_experts.h"

namespace sparsight {

// The result of MlpExperts::packed(). Has no parameters, shares no memory with the original weights, and raises Error
// if gradients are needed.
class PackedMlpExperts : public Experts {
 public:
  // weights: fp32. dropout: whether the original experts use dropout in training, which is an error here.
  PackedMlpExperts(const ExpertMlpWeights& weights, WeightType type, Activation activation, bool dropout);
  bool is_stochastic(const ForwardMode& mode) const override { return mode.dropout && dropout_; }
  at::Tensor apply_routing(const at::Tensor& tokens, const Routing& routing,
                           const ExpertContext& context = {}) override;

 protected:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) override;

 private:
  at::Tensor run(const at::Tensor& tokens, const ExpertRows& rows, bool drops) const;

  PackedExperts weights_;
  Activation activation_;
  bool dropout_;
};

}  // namespace sparsight
