// ops/grouped_linear.h for fp32 on a CPU. As in cpu/expert_mlp.h the work is split by the numbers of rows alone:
// results have the same bits for any number of threads, which torch's own matrix product does not guarantee.
#pragma once

#include "sparsight/ops/grouped_linear.h"

namespace sparsight::cpu {

at::Tensor grouped_linear_forward(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                                  const at::Tensor& bias, const ResidualAdd& add = {});
GroupedLinearGradients grouped_linear_backward(const at::Tensor& grad, const at::Tensor& rows,
                                               const at::Tensor& offsets, const at::Tensor& weight,
                                               GroupedLinearNeeds needs);

}  // namespace sparsight::cpu
