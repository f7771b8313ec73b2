// Batch norm of feature maps with the statistics of their batch, on the kernels (kernels/elementwise/batch_norm.h).
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

struct NormedBatch {
  at::Tensor y;               // of x's shape, channels last in memory
  at::Tensor mean, variance;  // [C] of the batch; the variance is the unbiased one. Not differentiable
};

// x: [B,C,H,W], weight, bias: [C]; fp32 on a CPU, not empty. y = weight (x - mean) / sqrt(variance + epsilon) + bias,
// with the biased variance. The bits do not depend on the number of threads. Differentiable once.
NormedBatch batch_norm_maps(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

}  // namespace sparsight
