#include "sparsight/ops/ref/grouped_linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight::ref {
namespace {

// Calls `body(expert, first, count)` for each expert that has rows.
template <class Body>
void for_each_group(const at::Tensor& offsets, const Body& body) {
  const at::Tensor on_cpu = offsets.to(at::kCPU);
  const int64_t* offset = on_cpu.const_data_ptr<int64_t>();
  for (int64_t expert = 0; expert + 1 < offsets.size(0); ++expert)
    if (offset[expert] < offset[expert + 1]) body(expert, offset[expert], offset[expert + 1] - offset[expert]);
}

}  // namespace

at::Tensor grouped_linear_forward(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                                  const at::Tensor& bias) {
  at::Tensor out = at::empty({rows.size(0), weight.size(2)}, rows.options());
  for_each_group(offsets, [&](int64_t e, int64_t first, int64_t count) {
    at::Tensor block = out.narrow(0, first, count);
    if (bias.defined())
      at::addmm_out(block, bias[e], rows.narrow(0, first, count), weight[e]);
    else
      at::mm_out(block, rows.narrow(0, first, count), weight[e]);
  });
  return out;
}

GroupedLinearGradients grouped_linear_backward(const at::Tensor& grad, const at::Tensor& rows,
                                               const at::Tensor& offsets, const at::Tensor& weight,
                                               GroupedLinearNeeds needs) {
  GroupedLinearGradients out;
  if (needs.weight) out.weight = at::zeros_like(weight);
  if (needs.bias) out.bias = at::zeros({weight.size(0), weight.size(2)}, weight.options());
  if (needs.rows) out.rows = at::empty_like(rows);
  for_each_group(offsets, [&](int64_t e, int64_t first, int64_t count) {
    const at::Tensor block = grad.narrow(0, first, count);
    if (needs.weight) {
      at::Tensor weight_grad = out.weight[e];
      at::mm_out(weight_grad, rows.narrow(0, first, count).t(), block);
    }
    if (needs.bias) {
      at::Tensor bias_grad = out.bias[e];
      at::sum_out(bias_grad, block, 0);
    }
    if (needs.rows) {
      at::Tensor rows_grad = out.rows.narrow(0, first, count);
      at::mm_out(rows_grad, block, weight[e].t());
    }
  });
  return out;
}

}  // namespace sparsight::ref
