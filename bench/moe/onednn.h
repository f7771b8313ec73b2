// Experts on oneDNN's linear layers, through the operators that torch.compile uses for them. Letters:
// sparsight/moe/axes.md; R rows, I and O input and output width.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/ops/expert_mlp.h"

namespace sparsight::bench {

// x: [R,I]; weight: [O,I], plain or from onednn_packed(); bias: [O] or undefined. Returns [R,O], after GELU (exact) if
// `gelu`, fused into the product. fp32 on a CPU, without gradients.
at::Tensor onednn_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool gelu = false);

// Each expert's matrices for onednn_product(): [F,D] and [D,F].
struct OnednnExperts {
  std::vector<at::Tensor> w1, b1, w2, b2;
};
// rows: 0 for plain matrices, or the number of rows per expert to pack them for.
OnednnExperts onednn_experts(const ExpertMlpWeights& weights, int64_t rows);

}  // namespace sparsight::bench
