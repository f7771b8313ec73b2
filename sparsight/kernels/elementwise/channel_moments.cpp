#include "sparsight/kernels/elementwise/channel_moments.h"

#include <algorithm>
#include <cmath>

namespace sparsight::cpu {

void channel_moments(const float* x, int64_t width, int64_t ld, int64_t channels, ChannelMoments* moments) {
  constexpr int64_t kAtOnce = 64;  // channels
  for (int64_t first = 0; first < channels; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, channels - first);
    float mean[kAtOnce] = {}, squares[kAtOnce] = {};
    for (int64_t i = 0; i < width; ++i)
      for (int64_t c = 0; c < count; ++c) mean[c] += x[i * ld + first + c];
    for (int64_t c = 0; c < count; ++c) mean[c] /= static_cast<float>(width);
    for (int64_t i = 0; i < width; ++i)
      for (int64_t c = 0; c < count; ++c) {
        const float far = x[i * ld + first + c] - mean[c];
        squares[c] += far * far;
      }
    for (int64_t c = 0; c < count; ++c) moments[first + c] = {mean[c], squares[c]};
  }
}

void group_scales(const MapMoments& m, const float* weight, const float* bias, float* scale, float* shift) {
  const int64_t size = m.channels / m.groups;
  for (int64_t group = 0; group < m.groups; ++group) {
    double sum = 0, squares = 0;
    const auto for_each = [&](const auto& body) {
      for (int64_t row = 0; row < m.count; ++row)
        for (int64_t c = group * size; c < (group + 1) * size; ++c) body(m.rows[row * m.channels + c]);
    };
    for_each([&](const ChannelMoments& part) { sum += part.mean; });
    const double mean = sum / static_cast<double>(m.count * size);
    for_each([&](const ChannelMoments& part) {
      squares += part.squares + static_cast<double>(m.width) * (part.mean - mean) * (part.mean - mean);
    });
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(m.count * size * m.width) + m.epsilon);
    for (int64_t c = group * size; c < (group + 1) * size; ++c) {
      scale[c] = static_cast<float>(weight[c] * inverse);
      shift[c] = static_cast<float>(bias[c] - mean * weight[c] * inverse);
    }
  }
}

}  // namespace sparsight::cpu
