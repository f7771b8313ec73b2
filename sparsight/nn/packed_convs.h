// Convolutions and their norms as steps for inference (engine/conv_chain.h).
#pragma once

#include "sparsight/engine/conv_chain.h"
#include "sparsight/nn/batch_norm.h"
#include "sparsight/nn/conv.h"
#include "sparsight/nn/norm.h"
#include "sparsight/nn/packed_weights.h"

namespace sparsight {

// A batch norm with its running averages as y = scale x + shift per channel: scale = weight / sqrt(variance +
// epsilon), shift = bias - mean * scale. In fp64, [C] each.
struct BatchNormAffine {
  at::Tensor scale, shift;
};
BatchNormAffine batch_norm_affine(const BatchNormImpl& norm);

// The step of a convolution. `folded`, the batch norm after it, is folded into its weights and bias in fp64. A
// convolution of several groups must be depthwise.
engine::ConvStep conv_step(const ConvImpl& conv, WeightType type, const BatchNormImpl* folded = nullptr);
engine::Affine packed_affine(const BatchNormImpl& norm);
engine::GroupNorm packed_group_norm(const GroupNormImpl& norm);

}  // namespace sparsight
