#include "sparsight/kernels/elementwise/batch_norm.h"

#include <algorithm>
#include <memory_resource>
#include <vector>

#include "sparsight/kernels/conv/conv_task.h"
#include "sparsight/kernels/elementwise/channel_moments.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/memory/scratch.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kBlockRows = 256;  // whose sums are made by one task

int64_t count_row_blocks(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// Calls body(block, first row, rows).
template <class Body>
void each_block(Threads& threads, int64_t rows, const Body& body) {
  run_tasks(threads, count_row_blocks(rows), [&](int64_t block, const auto&) {
    const int64_t first = block * kBlockRows;
    body(block, first, std::min(kBlockRows, rows - first));
  });
}

// A channel's sums over some rows: of the gradient, and of the gradient times x - mean.
struct GradientSums {
  float grad = 0, product = 0;
};

void add_gradients(const BatchNormBackward& p, int64_t first, int64_t count, GradientSums* sums) {
  constexpr int64_t kAtOnce = 64;  // channels
  const int64_t channels = p.shape.channels;
  for (int64_t c0 = 0; c0 < channels; c0 += kAtOnce) {
    const int64_t here = std::min(kAtOnce, channels - c0);
    float grads[kAtOnce] = {}, products[kAtOnce] = {};
    for (int64_t r = first; r < first + count; ++r) {
      const float *const grad = p.grad + r * channels + c0, *const x = p.x + r * channels + c0;
      for (int64_t c = 0; c < here; ++c) {
        grads[c] += grad[c];
        products[c] += grad[c] * (x[c] - p.mean[c0 + c]);
      }
    }
    for (int64_t c = 0; c < here; ++c) sums[c0 + c] = {grads[c], products[c]};
  }
}

// x_grad = factor grad + slope x + shift.
struct InputGradient {
  std::pmr::vector<float> factor, slope, shift, zeros;  // [C]
};

}  // namespace

void batch_moments(Threads& threads, ChannelRows shape, const float* x, double* mean, double* variance) {
  const int64_t channels = shape.channels, blocks = count_row_blocks(shape.rows);
  std::pmr::vector<ChannelMoments> parts(static_cast<size_t>(blocks * channels), scratch());
  each_block(threads, shape.rows, [&](int64_t block, int64_t first, int64_t count) {
    channel_moments(x + first * channels, count, channels, channels, parts.data() + block * channels);
  });
  for (int64_t c = 0; c < channels; ++c) {
    double seen = 0, average = 0, squares = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      const ChannelMoments& part = parts[static_cast<size_t>(block * channels + c)];
      const auto count = static_cast<double>(std::min(kBlockRows, shape.rows - block * kBlockRows));
      const double far = part.mean - average, all = seen + count;
      squares += part.squares + far * far * seen * count / all;  // Chan, Golub and LeVeque 1983, equation 1.5b
      average += far * count / all;
      seen = all;
    }
    mean[c] = average, variance[c] = squares / seen;
  }
}

void scale_channels(Threads& threads, ChannelRows shape, const float* x, const float* scale, const float* shift,
                    float* y) {
  const int64_t channels = shape.channels;
  each_block(threads, shape.rows, [&](int64_t, int64_t first, int64_t count) {
    kernels().scale_shift({.x = x + first * channels,
                           .scale = scale,
                           .shift = shift,
                           .y = y + first * channels,
                           .rows = count,
                           .width = channels,
                           .ld = channels});
  });
}

// With normal = (x - mean) inverse and R rows: x_grad = weight inverse (grad - mean(grad) - normal mean(grad normal)),
// Ioffe & Szegedy 2015, "Batch Normalization", section 3.
void batch_norm_backward(Threads& threads, const BatchNormBackward& p) {
  const int64_t channels = p.shape.channels, blocks = count_row_blocks(p.shape.rows);
  std::pmr::vector<GradientSums> parts(static_cast<size_t>(blocks * channels), scratch());
  each_block(threads, p.shape.rows, [&](int64_t block, int64_t first, int64_t count) {
    add_gradients(p, first, count, parts.data() + block * channels);
  });
  const auto per_channel = [&] { return std::pmr::vector<float>(static_cast<size_t>(channels), 0.0F, scratch()); };
  InputGradient to{per_channel(), per_channel(), per_channel(), per_channel()};
  for (int64_t c = 0; c < channels; ++c) {
    double grad = 0, product = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      const GradientSums& part = parts[static_cast<size_t>(block * channels + c)];
      grad += part.grad, product += part.product;
    }
    const double inverse = p.inverse[c], rows = static_cast<double>(p.shape.rows), scale = p.weight[c] * inverse;
    p.bias_grad[c] = static_cast<float>(grad);
    p.weight_grad[c] = static_cast<float>(product * inverse);
    const double slope = -scale * inverse * inverse * product / rows;
    const auto at = static_cast<size_t>(c);
    to.factor[at] = static_cast<float>(scale), to.slope[at] = static_cast<float>(slope);
    to.shift[at] = static_cast<float>(-scale * grad / rows - slope * p.mean[c]);
  }
  if (!p.x_grad) return;
  each_block(threads, p.shape.rows, [&](int64_t, int64_t first, int64_t count) {
    thread_local Workspace space;
    float* const of_x = space.floats(count * channels);
    const int64_t at = first * channels;
    ScaleShift s{.x = p.x + at, .scale = to.slope.data(), .shift = to.shift.data(), .y = of_x, .rows = count};
    s.width = s.ld = channels;
    kernels().scale_shift(s);
    s.x = p.grad + at, s.scale = to.factor.data(), s.shift = to.zeros.data(), s.residual = of_x, s.y = p.x_grad + at;
    kernels().scale_shift(s);
  });
}

}  // namespace sparsight::cpu
