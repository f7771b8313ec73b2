// A convolution of feature maps on the kernels (kernels/conv/conv2d.h). Letters: B images, C input and O output
// channels, K side of the kernel.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// Zeros around the map.
struct MapPadding {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

// x: [B,C,H,W], weight: [O,C,K,K], bias: [O] or undefined; fp32 on a CPU, not empty. Returns [B,O,H',W'], channels last
// in memory, with H' = (H + top + bottom - K) / stride + 1. The bits do not depend on the number of threads.
// Differentiable once, or any number of times while a TwiceDifferentiable lives.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  const MapPadding& padding);

// The same by torch, of any type and on any device; `groups` as in at::conv2d.
at::Tensor torch_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                        const MapPadding& padding, int64_t groups);

}  // namespace sparsight
