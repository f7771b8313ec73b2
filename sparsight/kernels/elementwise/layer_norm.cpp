#include "sparsight/kernels/elementwise/layer_norm.h"

#include <algorithm>

#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kRowsOfTask = 32;
// Rows whose gradients of weight and bias are summed one after the other: fixed, so that sums have the same bits for
// any number of threads.
constexpr int64_t kRowsOfSum = 64;

int64_t count_tasks(int64_t rows, int64_t size) { return (rows + size - 1) / size; }

}  // namespace

void layer_norm(Threads& threads, const LayerNormForward& p) {
  run_tasks(threads, count_tasks(p.rows, kRowsOfTask), [&](int64_t task, const auto&) {
    for (int64_t r = task * kRowsOfTask, end = std::min(p.rows, r + kRowsOfTask); r < end; ++r) {
      const RowMoments of_row = kernels().layer_norm(p.x + r * p.width, p.weight, p.bias, static_cast<float>(p.epsilon),
                                                     p.width, p.out + r * p.width, /*out_block=*/kBlock);
      if (p.moments) p.moments[2 * r] = of_row.mean, p.moments[2 * r + 1] = of_row.scale;
    }
  });
}

void layer_norm_backward(Threads& threads, const LayerNormBackward& p) {
  const int64_t width = p.width, sums = count_tasks(p.rows, kRowsOfSum);
  thread_local Workspace space;
  float* const partial = p.weight_grad ? space.floats(2 * sums * width) : nullptr;  // [sums,2,D]
  run_tasks(threads, sums, [&](int64_t task, const auto&) {
    float* const of_weight = partial ? partial + 2 * task * width : nullptr;
    if (partial) std::fill_n(of_weight, 2 * width, 0.0f);
    for (int64_t r = task * kRowsOfSum, end = std::min(p.rows, r + kRowsOfSum); r < end; ++r) {
      const LayerNormRow row{.x = p.x + r * width,
                             .grad = p.grad + r * width,
                             .weight = p.weight,
                             .residual = p.residual ? p.residual + r * width : nullptr,
                             .moments = {p.moments[2 * r], p.moments[2 * r + 1]},
                             .width = width};
      training_kernels().layer_norm_backward(row, p.x_grad + r * width, of_weight,
                                             partial ? of_weight + width : nullptr);
    }
  });
  if (!partial) return;
  const auto add_up = [&](int64_t which, float* sum) {
    std::fill_n(sum, width, 0.0f);
    for (int64_t i = 0; i < sums; ++i) kernels().add_scaled(1, partial + (2 * i + which) * width, sum, width);
  };
  add_up(0, p.weight_grad);
  add_up(1, p.bias_grad);
}

}  // namespace sparsight::cpu
