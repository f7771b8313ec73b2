#include "sparsight/ops/cpu/layer_norm.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/tasks.h"
#include "sparsight/ops/cpu/workspace.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kRowsOfTask = 32;
// Rows whose gradients of weight and bias are summed one after the other: fixed, so that sums have the same bits for
// any number of threads.
constexpr int64_t kRowsOfSum = 64;

int64_t tasks_of(int64_t rows, int64_t size) { return (rows + size - 1) / size; }

}  // namespace

LayerNormOutput layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   double epsilon, bool needs_moments) {
  const int64_t rows = x.size(0), width = x.size(1);
  LayerNormOutput output;
  output.out = empty_from_arena(x.sizes());
  if (needs_moments) output.moments = at::empty({rows, 2}, at::kFloat);
  const float *const from = x.const_data_ptr<float>(), *const w = weight.const_data_ptr<float>();
  const float* const b = bias.const_data_ptr<float>();
  float* const to = output.out.data_ptr<float>();
  float* const moments = needs_moments ? output.moments.data_ptr<float>() : nullptr;
  run_tasks(tasks_of(rows, kRowsOfTask), [&](int64_t task, const auto&) {
    for (int64_t r = task * kRowsOfTask, end = std::min(rows, r + kRowsOfTask); r < end; ++r) {
      const RowMoments of_row = kernels().layer_norm(from + r * width, w, b, static_cast<float>(epsilon), width,
                                                     to + r * width, /*out_block=*/kBlock);
      if (moments) moments[2 * r] = of_row.mean, moments[2 * r + 1] = of_row.scale;
    }
  });
  return output;
}

LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& moments, const at::Tensor& residual, bool needs_weights) {
  const int64_t rows = x.size(0), width = x.size(1), sums = tasks_of(rows, kRowsOfSum);
  LayerNormGradients out{empty_from_arena(x.sizes()), {}, {}};
  const float *const from = x.const_data_ptr<float>(), *const g = grad.const_data_ptr<float>();
  const float *const w = weight.const_data_ptr<float>(), *const m = moments.const_data_ptr<float>();
  const float* const added = residual.defined() ? residual.const_data_ptr<float>() : nullptr;
  float* const to = out.x.data_ptr<float>();
  thread_local Workspace space;
  float* const partial = needs_weights ? space.floats(2 * sums * width) : nullptr;  // [sums,2,D]
  run_tasks(sums, [&](int64_t task, const auto&) {
    float* const of_weight = partial ? partial + 2 * task * width : nullptr;
    if (partial) std::fill_n(of_weight, 2 * width, 0.0f);
    for (int64_t r = task * kRowsOfSum, end = std::min(rows, r + kRowsOfSum); r < end; ++r) {
      const LayerNormRow row{.x = from + r * width,
                             .grad = g + r * width,
                             .weight = w,
                             .residual = added ? added + r * width : nullptr,
                             .moments = {m[2 * r], m[2 * r + 1]},
                             .width = width};
      kernels().layer_norm_backward(row, to + r * width, of_weight, partial ? of_weight + width : nullptr);
    }
  });
  if (!needs_weights) return out;
  const auto add_up = [&](int64_t which, at::Tensor& total) {
    total = at::empty({width}, at::kFloat);
    float* const sum = total.data_ptr<float>();
    std::fill_n(sum, width, 0.0f);
    for (int64_t i = 0; i < sums; ++i) kernels().add_scaled(1, partial + (2 * i + which) * width, sum, width);
  };
  add_up(0, out.weight);
  add_up(1, out.bias);
  return out;
}

}  // namespace sparsight::cpu
