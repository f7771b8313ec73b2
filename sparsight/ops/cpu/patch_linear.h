// The kernels of patch_linear() (ops/patch_linear.h), without autograd. Letters as there.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/kernels/conv/patch_rows.h"

namespace sparsight::cpu {

// images: [B,C,H,W], fp32.
StridedImages strided_images(const at::Tensor& images);

// images: [B,C,H,W], any strides; weight: [O,C,P,P] and bias: [O], contiguous; fp32. Returns [B,S,O].
at::Tensor patch_linear_forward(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias);
// grad: [B,S,O], contiguous. Returns the gradient of images [B,C,H,W].
at::Tensor patch_linear_backward(const at::Tensor& grad, const at::Tensor& images, const at::Tensor& weight);
// The patches themselves, [B S, C P P] in the order (channel, row, column).
at::Tensor gather_patches(const at::Tensor& images, int64_t side);

}  // namespace sparsight::cpu
