// The projection of a patch embedding: a linear map of square patches, which is a convolution whose stride is its
// kernel size (Dosovitskiy et al. 2021, equation 1, without positions). Patches are read where they are multiplied, and
// gradients of pixels are written where they belong, so that neither is copied. Letters: moe/axes.md; P the side of a
// patch, S = (H / P) (W / P) patches of an image, O output width.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// images: [B,C,H,W], H and W multiples of P; weight: [O,C,P,P]; bias: [O]. fp32 on a CPU, not empty. Returns [B,S,O],
// the patches row by row; the bits do not depend on the number of threads. Differentiable once, or any number of times
// while a TwiceDifferentiable lives.
at::Tensor patch_linear(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace sparsight
