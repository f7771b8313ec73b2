// Layer norm and the layer that reads it, as one operation that keeps its input instead of the normalised rows: the
// backward pass normalises again, which takes a hundredth of its time and saves a tensor per layer. Letters:
// moe/axes.md; R rows, I and O input and output width. Contiguous fp32 tensors on a CPU, of which results have the same
// bits as those of layer_norm() followed by the layer.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/ops/activation.h"
#include "sparsight/ops/residual_add.h"

namespace sparsight {

struct RowNorm {
  at::Tensor weight, bias;  // those of layer_norm()
  double epsilon = 1e-6;
};

// x: [R,I], weight: [O,I], bias: [O] or undefined. Returns [R,O]: norm(x) weight^T + bias. Differentiable once.
at::Tensor norm_linear(const at::Tensor& x, const RowNorm& norm, const at::Tensor& weight, const at::Tensor& bias);

// Two-layer MLP: w1 [F,D], b1 [F], w2 [D,F], b2 [D].
struct DenseMlpWeights {
  at::Tensor w1, b1, w2, b2;
  Activation activation = Activation::gelu;
};
// x: [R,D]. Returns [R,D]: act(norm(x) w1^T + b1) w2^T + b2. Differentiable once.
at::Tensor norm_mlp(const at::Tensor& x, const RowNorm& norm, const DenseMlpWeights& weights);
// x + drop(norm_mlp(x)): the second half of a transformer block, of which residual_branch.h has the first.
at::Tensor mlp_residual(const at::Tensor& x, const RowNorm& norm, const DenseMlpWeights& weights,
                        const BranchDrop& drop = {});

// norm(x) without autograd; x: [R,D].
at::Tensor normalised_rows(const at::Tensor& x, const RowNorm& norm);

}  // namespace sparsight
