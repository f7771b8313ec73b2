// The softmax of rows, as routers take it over the logits of a token: few numbers in many rows. fp32 on a CPU has
// kernels, whose results have the same bits for any number of threads; other types and devices use torch's softmax.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// x: [R,C], floating. Returns [R,C], exp(x - max) / sum(exp(x - max)) of each row, and NaN for a row with NaN, with
// +inf or with nothing but -inf. Differentiable any number of times. Raises Error for other shapes and types.
at::Tensor softmax_rows(const at::Tensor& x);

}  // namespace sparsight
