// Makes the inference copies of convolutions (engine/conv_chain.h) from modules, and runs them on tensors.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sparsight/engine/conv_chain.h"
#include "sparsight/nn/batch_norm.h"
#include "sparsight/nn/conv.h"
#include "sparsight/nn/copied_tensors.h"
#include "sparsight/nn/norm.h"

namespace sparsight {

// A batch norm with its running averages as y = scale x + shift per channel: scale = weight / sqrt(variance +
// epsilon), shift = bias - mean * scale. In fp64, [C] each.
struct BatchNormAffine {
  at::Tensor scale, shift;
};
BatchNormAffine batch_norm_affine(const BatchNormImpl& norm);

// Without a norm, or with the batch norm that follows the convolution folded into its weights and bias, in fp64. A
// convolution of several groups must be depthwise.
engine::ConvStep conv_step(const ConvImpl& conv, WeightType type, const BatchNormImpl* folded = nullptr);
engine::Affine packed_affine(const BatchNormImpl& norm);
engine::GroupNorm packed_group_norm(const GroupNormImpl& norm);

// Convolutions packed from the parameters and buffers of some modules, and used until one of these changes.
class PackedConvs {
 public:
  void pack(std::vector<engine::ConvStep> steps, std::vector<at::Tensor> sources);
  // Whether there is a copy that serves for x (CopiedTensors::serve).
  bool usable(const at::Tensor& x) const;
  // x: [B,C,H,W] -> [B,C',H',W'] in channels-last memory.
  at::Tensor run(const at::Tensor& x) const;

 private:
  std::shared_ptr<const engine::ConvChain> convs_;
  CopiedTensors sources_;
};

}  // namespace sparsight
