// A linear map per expert on rows grouped by expert (a grouped GEMM), from which other kinds of experts are built.
// Letters: moe/axes.md; R rows, I and O input and output width. fp32 on a CPU has kernels, whose results have the same
// bits for any number of threads.
#pragma once

#include "sparsight/ops/residual_add.h"

namespace sparsight {

// rows: [R,I]; expert e owns rows offsets[e] .. offsets[e+1] (offsets: [E+1] int64); weight: [E,I,O]; bias: [E,O] or
// undefined. Floating tensors of one type. Returns [R,O]: rows[r] weight[e] + bias[e]. Differentiable once; experts
// without rows are not computed and receive a gradient of exactly 0.
at::Tensor grouped_linear(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                          const at::Tensor& bias = {});

// The offsets of a single expert that owns all rows [R,...]: (0, R).
at::Tensor one_group(const at::Tensor& rows);

// The same without autograd. Tensors are contiguous; of the weight, either itself or its transpose [E,O,I] is.
// add: what becomes of the rows of the result.
struct GroupedLinearGradients {  // undefined unless requested
  at::Tensor rows;               // [R,I]
  at::Tensor weight;             // [E,I,O]
  at::Tensor bias;               // [E,O]
};
struct GroupedLinearNeeds {
  bool rows = true, weight = true, bias = true;
};
at::Tensor grouped_linear_forward(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                                  const at::Tensor& bias, const ResidualAdd& add = {});
// grad: [R,O], of the result.
GroupedLinearGradients grouped_linear_backward(const at::Tensor& grad, const at::Tensor& rows,
                                               const at::Tensor& offsets, const at::Tensor& weight,
                                               GroupedLinearNeeds needs);

}  // namespace sparsight
