#include "sparsight/ops/ref/grouped_linear.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
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

// oneDNN, which multiplies bf16 and fp16 on CPUs, compiles kernels for every shape and keeps those of 1024 shapes,
// about 0.6 MB each. Experts have other numbers of rows in every step, so they are padded to multiples of 8 and, above
// 32, to one of four numbers between powers of two.
bool pads_rows(const at::Tensor& rows) {
  return rows.is_cpu() && (rows.scalar_type() == at::kBFloat16 || rows.scalar_type() == at::kHalf);
}
int64_t padded_count(int64_t count) {
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - 1)));
  const int64_t step = std::max<int64_t>(8, below / 4);
  return (count + step - 1) / step * step;
}

// Rows first .. first + count of `rows`, followed by rows of zeros where they are padded.
at::Tensor rows_of_group(const at::Tensor& rows, int64_t first, int64_t count) {
  const at::Tensor group = rows.narrow(0, first, count);
  return pads_rows(rows) ? at::constant_pad_nd(group, {0, 0, 0, padded_count(count) - count}) : group;
}

// product(out) writes as many rows as rows_of_group() has, of which rows first .. first + count of `out` take the
// first.
template <class Product>
void write_group(at::Tensor& out, int64_t first, int64_t count, const Product& product) {
  at::Tensor group = out.narrow(0, first, count);
  if (!pads_rows(out)) return product(group);
  at::Tensor padded = at::empty({padded_count(count), out.size(1)}, out.options());
  product(padded);
  group.copy_(padded.narrow(0, 0, count));
}

}  // namespace

at::Tensor grouped_linear_forward(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                                  const at::Tensor& bias) {
  at::Tensor out = at::empty({rows.size(0), weight.size(2)}, rows.options());
  for_each_group(offsets, [&](int64_t e, int64_t first, int64_t count) {
    const at::Tensor in = rows_of_group(rows, first, count);
    write_group(out, first, count, [&](at::Tensor& block) {
      if (bias.defined())
        at::addmm_out(block, bias[e], in, weight[e]);
      else
        at::mm_out(block, in, weight[e]);
    });
  });
  return out;
}

at::Tensor grouped_linear(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                          const at::Tensor& bias) {
  const int64_t* offset = offsets.const_data_ptr<int64_t>();
  std::vector<at::Tensor> groups;
  for (int64_t e = 0; e < weight.size(0); ++e) {
    const at::Tensor group = rows.narrow(0, offset[e], offset[e + 1] - offset[e]);
    groups.push_back(bias.defined() ? at::addmm(bias[e], group, weight[e]) : at::mm(group, weight[e]));
  }
  return at::cat(groups, 0);
}

GroupedLinearGradients grouped_linear_backward(const at::Tensor& grad, const at::Tensor& rows,
                                               const at::Tensor& offsets, const at::Tensor& weight,
                                               GroupedLinearNeeds needs) {
  GroupedLinearGradients out;
  if (needs.weight) out.weight = at::zeros_like(weight);
  if (needs.bias) out.bias = at::zeros({weight.size(0), weight.size(2)}, weight.options());
  if (needs.rows) out.rows = at::empty_like(rows);
  for_each_group(offsets, [&](int64_t e, int64_t first, int64_t count) {
    const at::Tensor block = rows_of_group(grad, first, count);
    if (needs.weight) {
      at::Tensor weight_grad = out.weight[e];
      at::mm_out(weight_grad, rows_of_group(rows, first, count).t(), block);
    }
    if (needs.bias) {
      at::Tensor bias_grad = out.bias[e];
      at::sum_out(bias_grad, grad.narrow(0, first, count), 0);
    }
    if (needs.rows)
      write_group(out.rows, first, count, [&](at::Tensor& rows_grad) { at::mm_out(rows_grad, block, weight[e].t()); });
  });
  return out;
}

}  // namespace sparsight::ref
