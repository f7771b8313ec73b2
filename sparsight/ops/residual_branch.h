// The two halves of a pre-norm transformer block (the second is mlp_residual() of norm_linear.h), each with its
// residual as one operation: the sum starts from the input in the last product, and the gradient of the input is summed
// where layer norm writes it, so neither pass allocates or reads a tensor for an addition. Dropout and drop path of the
// branch are in the same epilogue. Letters: moe/axes.md; R rows. Contiguous floating tensors of one type; fp32 on a CPU
// has kernels, whose results have the same bits for any number of threads. Differentiable once.
#pragma once

#include "sparsight/ops/norm_linear.h"

namespace sparsight {

// qkv [3D,D], qkv_bias [3D] or undefined, proj [D,D], proj_bias [D].
struct AttentionWeights {
  at::Tensor qkv, qkv_bias, proj, proj_bias;
  int64_t heads = 1;
};

// x: [B,S,D]. Returns [B,S,D]: x + drop(attention(norm(x) qkv^T + qkv_bias) proj^T + proj_bias), with R = B S rows.
at::Tensor attention_residual(const at::Tensor& x, const RowNorm& norm, const AttentionWeights& weights,
                              const BranchDrop& drop = {});

}  // namespace sparsight
