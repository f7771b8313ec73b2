// oneDNN's linear layer, through the operators that torch.compile uses for it. Letters: moe/axes.md; R rows, I and O
// input and output width. fp32 on a CPU.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace sparsight {

// x: [R,I]; weight: [O,I], plain or from onednn_packed(); bias: [O] or undefined. Returns [R,O], after GELU (exact) if
// `gelu`, fused into the product. No gradients.
at::Tensor onednn_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool gelu = false);

// weight: [O,I] -> the same in the order that oneDNN chooses for about so many rows.
at::Tensor onednn_packed(const at::Tensor& weight, int64_t rows);

// x weight^T + bias, with plain weights. Differentiable once, and any number of times under TwiceDifferentiable.
at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// Whether this build of torch has oneDNN.
bool has_onednn();

}  // namespace sparsight
