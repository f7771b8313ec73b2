#include "sparsight/ops/cpu/grouped_linear.h"

#include <algorithm>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/isa.h"
#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/packed_operand.h"
#include "sparsight/ops/cpu/residual_rows.h"
#include "sparsight/ops/cpu/tasks.h"
#include "sparsight/ops/cpu/workspace.h"
#include "sparsight/ops/product_type.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kRows = 96;  // per task: with their columns they stay in the cache
// More rows than small-M kernels take that sum in an order of their own, so that the bits do not depend on the number
// of threads.
constexpr int64_t kFewestRows = 24, kFewestRowsOnTiles = 65;
// Up to kFewColumns columns of a transposed matrix the dot products of the small-M kernel are the fastest, so tasks
// have few enough rows for it.
constexpr int64_t kFewColumns = 16, kSmallM = 12;
// Rows and columns of a weight's gradient per task. bf16: more rows, since each task packs its columns.
constexpr int64_t kInputs = 96, kBf16Inputs = 192, kBf16Outputs = 384;
constexpr int64_t kFewestOutputs = 192;  // of a task that is one of many for as many threads

struct Spaces {
  Workspace rows, panel;
};
Spaces& spaces() {
  thread_local Spaces scratch;
  return scratch;
}

// Rows first .. first + count, of one expert.
struct RowTask {
  int64_t expert, first, count;
};

int64_t fewest_rows() { return active_isa() == Isa::amx ? kFewestRowsOnTiles : kFewestRows; }

// Such that all threads have equally many tasks of equal size.
int64_t rows_of_tasks(int64_t rows) {
  const int64_t threads = at::get_num_threads(), most = kRows * threads;
  const int64_t rounds = std::max<int64_t>(1, (rows + most - 1) / most);
  return std::clamp((rows + rounds * threads - 1) / (rounds * threads), fewest_rows(), kRows);
}

// Columns of a weight's gradient per task: at most `maximum`, or fewer if there would be less than two tasks a thread.
int64_t outputs_of_tasks(int64_t outputs, int64_t maximum, int64_t others) {
  const int64_t even = (outputs / pieces_for_all_threads(others) + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  return std::min(maximum, std::max(kFewestOutputs, even));
}

// Tasks of up to `wanted` rows of an expert, but of at least `fewest` unless it has fewer.
std::vector<RowTask> row_tasks(const at::Tensor& offsets, int64_t wanted, int64_t fewest) {
  const int64_t* offset = offsets.const_data_ptr<int64_t>();
  std::vector<RowTask> tasks;
  for (int64_t e = 0; e + 1 < offsets.size(0); ++e) {
    const int64_t rows = offset[e + 1] - offset[e];
    const int64_t pieces = std::min((rows + wanted - 1) / wanted, std::max<int64_t>(1, rows / fewest));
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t first = rows * piece / pieces;
      tasks.push_back({e, offset[e] + first, rows * (piece + 1) / pieces - first});
    }
  }
  return tasks;
}

// out [R,columns] = rows [R,depth] times the matrix of each row's expert, + bias [E,columns] unless it is null, and
// then `add`. matrices: [E,depth,columns].
void multiply_rows(const at::Tensor& rows, const at::Tensor& offsets, const WeightView& matrices, const float* bias,
                   const ResidualAdd& add, at::Tensor& out) {
  const Kernels& kernel = kernels();
  const bool bf16 = product_type() == ProductType::bf16;
  const int64_t depth = rows.size(1), columns = out.size(1);
  const std::vector<RowTask> tasks = matrices.transposed && columns <= kFewColumns
                                         ? row_tasks(offsets, kSmallM, 1)
                                         : row_tasks(offsets, rows_of_tasks(rows.size(0)), fewest_rows());
  const PackedOperand packed(matrices, offsets.const_data_ptr<int64_t>(), offsets.size(0) - 1, bf16);
  const float* from = rows.const_data_ptr<float>();
  float* to = out.data_ptr<float>();
  const auto count = static_cast<int64_t>(tasks.size());
  const ResidualRows residual(add, columns);
  run_tasks(count, [&](int64_t number, const auto& claim) {
    const RowTask& task = tasks[static_cast<size_t>(number)];
    float* in = spaces().rows.floats(blocks_of(depth) * task.count * kBlockLd);
    for (int64_t i = 0; i < task.count; ++i)
      for (int64_t c = 0; c < depth; c += kBlock)
        std::copy_n(from + (task.first + i) * depth + c, std::min(kBlock, depth - c),
                    in + (c / kBlock * task.count + i) * kBlockLd);
    Gemm p;
    p.m = task.count, p.n = columns, p.k = depth;
    p.a = in, p.a_block = task.count * kBlockLd;
    p.b = matrices.at(task.expert, 0, 0), p.b_ld = matrices.ld(), p.b_transposed = matrices.transposed;
    p.bf16_products = bf16;
    p.c = to + task.first * columns, p.c_ld = columns;
    p.bias = bias ? bias + task.expert * columns : nullptr;
    residual.start(kernel, task.first, p);
    if (const int64_t then = claim(); then < count) {
      const RowTask& upcoming = tasks[static_cast<size_t>(then)];
      p.prefetch_all(from + upcoming.first * depth, upcoming.count, depth, depth);
    }
    packed.serve(p, task.expert, 0, 0);
    kernel.product(p, spaces().panel.floats(kernel.panel_floats));
    residual.finish(kernel, task.first, task.count, p.c);
  });
}

}  // namespace

at::Tensor grouped_linear_forward(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                                  const at::Tensor& bias, const ResidualAdd& add) {
  at::Tensor out = empty_from_arena({rows.size(0), weight.size(2)});
  multiply_rows(rows, offsets, view_of(weight), bias.defined() ? bias.const_data_ptr<float>() : nullptr, add, out);
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
    multiply_rows(grad, offsets, view_of(weight).t(), nullptr, {}, out.rows);
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
      kernel.product(p, spaces().panel.floats(kernel.panel_floats));
    }
    if (i > 0 || j > 0 || !to_bias) return;
    float* sum = to_bias + e * outputs;
    std::fill_n(sum, outputs, 0.0f);
    for (int64_t r = first; r < offset[e + 1]; ++r) kernel.add_scaled(1.0f, g + r * outputs, sum, outputs);
  });
  return out;
}

}  // namespace sparsight::cpu
