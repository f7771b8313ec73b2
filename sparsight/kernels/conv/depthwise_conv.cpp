#include "sparsight/kernels/conv/depthwise_conv.h"

#include <algorithm>

#include "sparsight/kernels/conv/conv_depth.h"
#include "sparsight/kernels/conv/conv_task.h"

namespace sparsight::cpu {
namespace {

// The taps of an output that lie on the map, along an axis of `side` positions; start: the input position of tap 0.
Range taps_on_map(int64_t start, int64_t kernel, int64_t side) {
  return {std::clamp<int64_t>(-start, 0, kernel), std::clamp<int64_t>(side - start, 0, kernel)};
}

// Neighbouring positions that read the same taps, on the kernel of norms: y = w x + bias with the first tap, and
// y = w x + y with each of the others.
struct DepthwiseRun {
  const float *x, *w, *bias, *zeros;  // of the first tap
  float* y;
  int64_t x_row, x_step, w_row;  // floats between rows of taps, and between positions
  Range rows, taps;
  int64_t positions, channels, ld;
  bool relu;

  void run() const {
    const bool together = x_step == ld;  // the kernel has one stride for x and y
    for (int64_t r = 0; r < rows.size(); ++r)
      for (int64_t t = 0; t < taps.size(); ++t) {
        const bool starts = r == 0 && t == 0, ends = r + 1 == rows.size() && t + 1 == taps.size();
        const float *from = x + r * x_row + t * ld, *weights = w + r * w_row + t * ld;
        for (int64_t i = 0; i < positions; i += together ? positions : 1) {
          float* const to = y + i * ld;
          kernels().scale_shift({from + i * x_step, weights, starts ? bias : zeros, starts ? nullptr : to, to,
                                 together ? positions : 1, channels, ld, relu && ends});
        }
      }
  }
};

}  // namespace

DepthwiseConv::DepthwiseConv(const float* weight, const float* bias, int64_t channels, int64_t kernel, WeightType type)
    : weight_(static_cast<size_t>(kernel * kernel * channels)),
      bias_(bias, bias + channels),
      zeros_(bias_.size()),
      type_(type) {
  const int64_t positions = kernel * kernel;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < positions; ++p) weight_[static_cast<size_t>(p * channels + c)] = weight[c * positions + p];
}

void DepthwiseConv::run(const ConvMaps& maps, const ConvGeometry& g, const ConvPart& part) const {
  const int64_t ld = channels();
  for (int64_t image = part.first_image; image < part.first_image + part.images; ++image)
    for (int64_t row = part.first_row; row < part.first_row + part.rows; ++row) {
      const int64_t top = row * g.stride - g.top;
      const Range rows = taps_on_map(top, g.kernel, g.height);
      const auto taps_at = [&](int64_t column) { return taps_on_map(column * g.stride - g.left, g.kernel, g.width); };
      float* const y = maps.y + (image * g.out_height + row) * g.out_width * ld + part.first;
      for (int64_t column = 0, last = 0; column < g.out_width; column = last) {
        const Range taps = taps_at(column);
        for (last = column + 1; last < g.out_width && taps_at(last) == taps;) ++last;
        const int64_t input = (image * g.height + top + rows.first) * g.width + column * g.stride - g.left + taps.first;
        DepthwiseRun{maps.x + input * ld + part.first,
                     weight_.data() + (rows.first * g.kernel + taps.first) * ld + part.first,
                     bias_.data() + part.first,
                     zeros_.data(),
                     y + column * ld,
                     g.width * ld,
                     g.stride * ld,
                     g.kernel * ld,
                     rows,
                     taps,
                     last - column,
                     part.count,
                     ld,
                     maps.relu}
            .run();
      }
    }
}

}  // namespace sparsight::cpu
