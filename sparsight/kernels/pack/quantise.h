// How weights are rounded to fewer bits: the one place that does it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sparsight::cpu {

// To nearest, ties to even. NaN stays NaN.
inline uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Scale of an output whose `count` weights are `stride` apart: max|w| / 127; NaN where one is not finite, so that the
// output becomes NaN.
inline float int8_scale(const float* weight, int64_t count, int64_t stride) {
  float most = 0;
  bool finite = true;
  for (int64_t l = 0; l < count; ++l) {
    most = std::max(most, std::abs(weight[l * stride]));
    finite = finite && std::isfinite(weight[l * stride]);
  }
  return finite ? most / 127 : std::numeric_limits<float>::quiet_NaN();
}

// weight / scale to nearest, ties to even; 0 where the scale is 0 or NaN.
inline int8_t to_int8(float weight, float scale) {
  return scale > 0 ? static_cast<int8_t>(std::nearbyint(weight / scale)) : int8_t{0};
}

}  // namespace sparsight::cpu
