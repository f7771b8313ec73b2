#include "sparsight/ops/cpu/grouped_linear.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/residual_rows.h"
#include "sparsight/ops/cpu/row_products.h"

namespace sparsight::cpu {
namespace {

// Rows and columns of a weight's gradient per task. bf16: more rows, since each task packs its columns.
constexpr int64_t kInputs = 96, kBf16Inputs = 192, kBf16Outputs = 384;
constexpr int64_t kFewestOutputs = 192;  // of a task that is one of many for as many threads

// Columns of a weight's gradient per task: at most `maximum`, or fewer if there would be less than two tasks a thread.
int64_t outputs_of_tasks(int64_t outputs, int64_t maximum, int64_t others) {
  const int64_t even = (outputs / pieces_for_all_threads(others) + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  return std::min(maximum, std::max(kFewestOutputs, even));
}

// Results as rows [R,O], with what is added to them.
struct RowsOut {
  const ResidualRows& residual;
  float* rows;
  void start(const RowTask& task, Gemm& p) const {
    p.c = rows + task.first * p.n;
    p.c_ld = p.n;
    residual.start(kernels(), task.first, p);
  }
  void finish(const RowTask& task, const Gemm& p) const { residual.finish(kernels(), task.first, task.count, p.c); }
};

// out [R,columns] = rows [R,depth] times the matrix of each row's expert, + bias [E,columns] unless it is null, and
// then `add`. matrices: [E,depth,columns].
void multiply(const at::Tensor& rows, const at::Tensor& offsets, const WeightView& matrices, const float* bias,
              const ResidualAdd& add, at::Tensor& out) {
  const ResidualRows residual(add, out.size(1));
  multiply_rows({offsets.const_data_ptr<int64_t>(), offsets.size(0) - 1, matrices, bias},
                PlainRows{rows.const_data_ptr<float>(), rows.size(1)}, RowsOut{residual, out.data_ptr<float>()});
}

}  // namespace

at::Tensor grouped_linear_forward(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                                  const at::Tensor& bias, const ResidualAdd& add) {
  at::Tensor out = empty_from_arena({rows.size(0), weight.size(2)});
  multiply(rows, offsets, view_of(weight), bias.defined() ? bias.const_data_ptr<float>() : nullptr, add, out);
  return out;
}

GroupedLinearGradients grouped_linear_backward(const at::Tensor& grad, const at::Tensor& rows,
                                               const at::Tensor& offsets, const at::Tensor& weight,
                                               GroupedLinearNeeds needs) {
  const Kernels& kernel = kernels();
  const bool bf16 = product_type() == ProductType::bf16;
  const int64_t experts = weight.size(0), inputs = weight.size(1), outputs = weight.size(2);
  const int64_t tall = bf16 ? kBf16Inputs : kInputs, blocks = (inputs + tall - 1) / tall;
  const int64_t wide = outputs_of_tasks(outputs, bf16 ? kBf16Outputs : outputs, experts * blocks);
  const int64_t strips = (outputs + wide - 1) / wide;
  const int64_t* offset = offsets.const_data_ptr<int64_t>();
  GroupedLinearGradients out;
  if (needs.rows) {
    out.rows = at::empty_like(rows);
    multiply(grad, offsets, view_of(weight).t(), nullptr, {}, out.rows);
  }
  if (needs.weight) out.weight = empty_from_arena(weight.sizes());
  if (needs.bias) out.bias = at::empty({experts, outputs}, weight.options());
  if (!needs.weight && !needs.bias) return out;
  const float *x = rows.const_data_ptr<float>(), *g = grad.const_data_ptr<float>();
  float* const to = needs.weight ? out.weight.data_ptr<float>() : nullptr;
  float* const to_bias = needs.bias ? out.bias.data_ptr<float>() : nullptr;
  // Each element is summed over all rows of its expert in one task.
  run_tasks(experts * blocks * strips, [&](int64_t number, const auto&) {
    const int64_t e = number / strips / blocks, first = offset[e];
    const int64_t i = number / strips % blocks * tall, j = number % strips * wide;
    if (to) {
      Gemm p;
      p.m = std::min(tall, inputs - i), p.n = std::min(wide, outputs - j), p.k = offset[e + 1] - first;
      p.a = x + first * inputs + i, p.a_ld = inputs, p.a_transposed = true;
      p.b = g + first * outputs + j, p.b_ld = outputs;
      p.bf16_products = bf16;
      p.c = to + (e * inputs + i) * outputs + j, p.c_ld = outputs;
      kernel.product(p, row_scratch().panel.floats(kernel.panel_floats));
    }
    if (i > 0 || j > 0 || !to_bias) return;
    float* sum = to_bias + e * outputs;
    std::fill_n(sum, outputs, 0.0f);
    for (int64_t r = first; r < offset[e + 1]; ++r) kernel.add_scaled(1.0f, g + r * outputs, sum, outputs);
  });
  return out;
}

}  // namespace sparsight::cpu
