#include "sparsight/kernels/experts/grouped_linear.h"

#include <algorithm>

namespace sparsight::cpu {
namespace {

// Rows and columns of a weight's gradient per task. bf16: more rows, since each task packs its columns.
constexpr int64_t kInputs = 96, kBf16Inputs = 192, kBf16Outputs = 384;
constexpr int64_t kFewestOutputs = 192;  // of a task that is one of many for as many threads

// Columns of a weight's gradient per task: at most `maximum`, or fewer if there would be less than two tasks a thread.
int64_t outputs_of_tasks(const Threads& threads, int64_t outputs, int64_t maximum, int64_t others) {
  const int64_t pieces = pieces_for_all_threads(threads, others);
  const int64_t even = (outputs / pieces + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
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

}  // namespace

void grouped_linear(Threads& threads, const RowProducts& products, const float* rows, const ResidualRows& residual,
                    float* out) {
  multiply_rows(threads, products, PlainRows{rows, products.matrices.rows}, RowsOut{residual, out});
}

void grouped_linear_sums(Threads& threads, const GroupedLinearSums& p) {
  const Kernels& kernel = kernels();
  const int64_t inputs = p.inputs, outputs = p.outputs;
  const int64_t tall = p.bf16 ? kBf16Inputs : kInputs, blocks = (inputs + tall - 1) / tall;
  const int64_t wide = outputs_of_tasks(threads, outputs, p.bf16 ? kBf16Outputs : outputs, p.experts * blocks);
  const int64_t strips = (outputs + wide - 1) / wide;
  // Each element is summed over all rows of its expert in one task.
  run_tasks(threads, p.experts * blocks * strips, [&](int64_t number, const auto&) {
    const int64_t e = number / strips / blocks, first = p.offset[e];
    const int64_t i = number / strips % blocks * tall, j = number % strips * wide;
    if (p.weight) {
      Gemm product;
      product.m = std::min(tall, inputs - i), product.n = std::min(wide, outputs - j);
      product.k = p.offset[e + 1] - first;
      product.a = p.rows + first * inputs + i, product.a_ld = inputs, product.a_transposed = true;
      product.b = p.grad + first * outputs + j, product.b_ld = outputs;
      product.bf16_products = p.bf16;
      product.c = p.weight + (e * inputs + i) * outputs + j, product.c_ld = outputs;
      kernel.product(product, row_scratch().panel.floats(kernel.panel_floats));
    }
    if (i > 0 || j > 0 || !p.bias) return;
    float* sum = p.bias + e * outputs;
    std::fill_n(sum, outputs, 0.0f);
    for (int64_t r = first; r < p.offset[e + 1]; ++r) kernel.add_scaled(1.0f, p.grad + r * outputs, sum, outputs);
  });
}

}  // namespace sparsight::cpu
