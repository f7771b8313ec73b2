// oneDNN's linear layers, through the operators that torch.compile uses for them. Letters: sparsight/moe/axes.md.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/ops/expert_mlp.h"

namespace sparsight::bench {

// x: [R,I]; weight: [O,I], plain or from onednn_packed(); bias: [O] or undefined. Returns [R,O], after GELU (exact) if
// `gelu`, fused into the product. No gradients.
at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool gelu);

// weight: [O,I] -> the same in the order that oneDNN chooses for about so many rows.
at::Tensor onednn_packed(const at::Tensor& weight, int64_t rows);

// Each expert's matrices for onednn_linear(): [F,D] and [D,F].
struct OnednnExperts {
  std::vector<at::Tensor> w1, b1, w2, b2;
};
// rows: 0 for plain matrices, or the number of rows per expert to pack them for.
OnednnExperts onednn_experts(const ExpertMlpWeights& weights, int64_t rows);

}  // namespace sparsight::bench
