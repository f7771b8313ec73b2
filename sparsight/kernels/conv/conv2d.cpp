#include "sparsight/kernels/conv/conv2d.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sparsight/kernels/conv/window_rows.h"
#include "sparsight/kernels/gemm/row_products.h"

namespace sparsight::cpu {
namespace {

// Window rows as the input of products.
struct Windows {
  const WindowRows& rows;
  void gather(const RowTask& task, float* to) const {
    for (int64_t i = 0; i < task.count; ++i)
      rows.write(task.first + i, to + i * kBlockLd, /*block=*/task.count * kBlockLd);
  }
  void prefetch(const RowTask&, Gemm&) const {}
};

// Rows of results as the positions of maps, one after the other.
struct AllPositions {
  float* maps;
  void start(const RowTask& task, Gemm& p) const { p.c = maps + task.first * p.n, p.c_ld = p.n; }
  void finish(const RowTask&, const Gemm&) const {}
};

// Every stride-th position on both axes, from one on.
struct SomePositions {
  const WindowRows& rows;
  int64_t stride, first_down, first_across, height, width;
  float* maps;  // [B,height,width,columns]
  void start(const RowTask&, Gemm& p) const { p.c = row_scratch().results.floats(p.m * p.n), p.c_ld = p.n; }
  void finish(const RowTask& task, const Gemm& p) const {
    const int64_t per_image = rows.rows_of_image(), per_row = rows.across.outputs;
    for (int64_t i = 0; i < task.count; ++i) {
      const int64_t row = task.first + i, y = row % per_image / per_row * stride + first_down,
                    x = row % per_row * stride + first_across;
      std::copy_n(p.c + i * p.c_ld, p.n, maps + ((row / per_image * height + y) * width + x) * p.n);
    }
  }
};

template <class Out>
void multiply_windows(Threads& threads, const WindowRows& rows, const WeightView& matrix, const float* bias, bool bf16,
                      const Out& out) {
  const std::array<int64_t, 2> offset{0, rows.rows()};
  multiply_rows(threads, {offset.data(), 1, matrix, bias, bf16}, Windows{rows}, out);
}

WindowAxis forward_axis(const ConvAxis& axis, const Conv2d& conv) {
  return {axis.side, conv.kernel, conv.stride, -axis.before, axis.outputs};
}

WindowRows forward_windows(const Conv2d& conv, const float* x) {
  return {x, conv.images, conv.inputs, forward_axis(conv.down, conv), forward_axis(conv.across, conv)};
}

// The gradient of every stride-th position of an axis, from `position` on, is a sum over windows of the output's
// gradient: of the taps t with (position + before - t) divisible by the stride, the last one first.
struct Phase {
  WindowAxis windows;
  int64_t position, first_tap;
  int64_t tap(int64_t window_tap, int64_t stride) const { return first_tap + (windows.taps - 1 - window_tap) * stride; }
};
Phase make_phase(const ConvAxis& axis, const Conv2d& conv, int64_t position) {
  const int64_t first_tap = (position + axis.before) % conv.stride;
  const int64_t taps = first_tap < conv.kernel ? (conv.kernel - first_tap + conv.stride - 1) / conv.stride : 0;
  const int64_t first = (position + axis.before - first_tap) / conv.stride - (taps - 1);
  return {{axis.outputs, taps, 1, first, (axis.side - position + conv.stride - 1) / conv.stride}, position, first_tap};
}

// [taps down, taps across, O, C] of the weight [O,K,K,C].
std::vector<float> phase_matrix(const Conv2d& conv, const float* weight, const Phase& down, const Phase& across) {
  std::vector<float> matrix;
  matrix.reserve(static_cast<size_t>(down.windows.taps * across.windows.taps * conv.outputs * conv.inputs));
  for (int64_t y = 0; y < down.windows.taps; ++y)
    for (int64_t x = 0; x < across.windows.taps; ++x) {
      const int64_t tap = down.tap(y, conv.stride) * conv.kernel + across.tap(x, conv.stride);
      for (int64_t o = 0; o < conv.outputs; ++o) {
        const float* const from = weight + (o * conv.kernel * conv.kernel + tap) * conv.inputs;
        matrix.insert(matrix.end(), from, from + conv.inputs);
      }
    }
  return matrix;
}

}  // namespace

void conv2d(Threads& threads, const Conv2d& conv, const float* x, const float* weight, const float* bias, float* y) {
  const WindowRows rows = forward_windows(conv, x);
  const WeightView matrix{const_cast<float*>(weight), rows.depth(), conv.outputs, /*transposed=*/true};
  multiply_windows(threads, rows, matrix, bias, conv.bf16, AllPositions{y});
}

void conv2d_backward_input(Threads& threads, const Conv2d& conv, const float* grad, const float* weight,
                           float* x_grad) {
  const int64_t height = conv.down.side, width = conv.across.side, stride = conv.stride;
  if (stride > conv.kernel) std::fill_n(x_grad, conv.images * height * width * conv.inputs, 0.0F);
  for (int64_t i = 0; i < std::min(stride, height); ++i)
    for (int64_t j = 0; j < std::min(stride, width); ++j) {
      const Phase down = make_phase(conv.down, conv, i), across = make_phase(conv.across, conv, j);
      if (down.windows.taps == 0 || across.windows.taps == 0) continue;  // between the windows: stays 0
      std::vector<float> taps = phase_matrix(conv, weight, down, across);
      const WindowRows rows{grad, conv.images, conv.outputs, down.windows, across.windows};
      const WeightView matrix{taps.data(), rows.depth(), conv.inputs, /*transposed=*/false};
      if (stride == 1)
        multiply_windows(threads, rows, matrix, nullptr, conv.bf16, AllPositions{x_grad});
      else
        multiply_windows(threads, rows, matrix, nullptr, conv.bf16,
                         SomePositions{rows, stride, i, j, height, width, x_grad});
    }
}

namespace {

constexpr int64_t kRowsAtOnce = 512;                         // window rows that are stored while they are multiplied
constexpr int64_t kNarrowestStrip = 64, kWidestStrip = 384;  // columns of a task, multiples of kPanelColumns

int64_t strip_columns(const Threads& threads, int64_t depth) {
  const int64_t even = depth / (2 * threads.count()) / kPanelColumns * kPanelColumns;
  return std::clamp(even, kNarrowestStrip, kWidestStrip);
}

}  // namespace

void conv2d_backward_weight(Threads& threads, const Conv2d& conv, const float* grad, const float* x, float* weight_grad,
                            float* bias_grad) {
  const WindowRows rows = forward_windows(conv, x);
  const int64_t depth = rows.depth(), outputs = conv.outputs, strip = strip_columns(threads, depth),
                strips = (depth + strip - 1) / strip;
  if (bias_grad) std::fill_n(bias_grad, outputs, 0.0F);
  if (rows.rows() == 0) std::fill_n(weight_grad, outputs * depth, 0.0F);
  static thread_local Workspace space;
  float* const stored = space.floats(std::min(kRowsAtOnce, rows.rows()) * depth);
  const Kernels& kernel = kernels();
  for (int64_t first = 0; first < rows.rows(); first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, rows.rows() - first);
    const float* const from = grad + first * outputs;
    run_ranges(threads, count, /*grain=*/16, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) rows.write(first + r, stored + r * depth, kBlock);
    });
    run_tasks(threads, strips, [&](int64_t number, const auto&) {
      const int64_t column = number * strip;
      Gemm p;
      p.m = outputs, p.n = std::min(strip, depth - column), p.k = count;
      p.a = from, p.a_ld = outputs, p.a_transposed = true;
      p.b = stored + column, p.b_ld = depth;
      p.bf16_products = conv.bf16;
      p.c = weight_grad + column, p.c_ld = depth;
      p.accumulate = first > 0;
      kernel.product(p, row_scratch().panel.floats(kernel.panel_floats));
      if (column > 0 || !bias_grad) return;
      for (int64_t r = 0; r < count; ++r) kernel.add_scaled(1.0F, from + r * outputs, bias_grad, outputs);
    });
  }
}

}  // namespace sparsight::cpu
