#include "sparsight/ops/cpu/grouped_linear.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "sparsight/kernels/experts/grouped_linear.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/residual_rows.h"
#include "sparsight/ops/product_type.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cpu {

at::Tensor grouped_linear_forward(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                                  const at::Tensor& bias, const ResidualAdd& add) {
  at::Tensor out = empty_from_arena({rows.size(0), weight.size(2)});
  grouped_linear(
      torch_threads(),
      {offsets.const_data_ptr<int64_t>(), weight.size(0), weight_view(weight), float_data(bias), multiplies_bf16()},
      rows.const_data_ptr<float>(), residual_rows(add, weight.size(2)), out.data_ptr<float>());
  return out;
}

GroupedLinearGradients grouped_linear_backward(const at::Tensor& grad, const at::Tensor& rows,
                                               const at::Tensor& offsets, const at::Tensor& weight,
                                               GroupedLinearNeeds needs) {
  const int64_t experts = weight.size(0);
  const int64_t* const offset = offsets.const_data_ptr<int64_t>();
  GroupedLinearGradients out;
  if (needs.rows) {
    out.rows = at::empty_like(rows);
    grouped_linear(torch_threads(), {offset, experts, weight_view(weight).t(), nullptr, multiplies_bf16()},
                   grad.const_data_ptr<float>(), residual_rows({}, rows.size(1)), out.rows.data_ptr<float>());
  }
  if (needs.weight) out.weight = empty_from_arena(weight.sizes());
  if (needs.bias) out.bias = at::empty({experts, weight.size(2)}, weight.options());
  if (needs.weight || needs.bias)
    grouped_linear_sums(torch_threads(), {.experts = experts,
                                          .inputs = weight.size(1),
                                          .outputs = weight.size(2),
                                          .offset = offset,
                                          .rows = rows.const_data_ptr<float>(),
                                          .grad = grad.const_data_ptr<float>(),
                                          .bf16 = multiplies_bf16(),
                                          .weight = floats_to(out.weight),
                                          .bias = floats_to(out.bias)});
  return out;
}

}  // namespace sparsight::cpu
