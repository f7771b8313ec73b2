// pixel_ops.h: hue, by way of HSV in bytes as in Pillow. The arithmetic is Pillow's, float and double where its is, so
// that every rounding falls the same way.
#include <algorithm>
#include <cmath>

#include <ATen/ops/empty_like.h>

#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {
namespace {

// All in 0..255, as integers.
struct Hsv {
  int hue, saturation, value;
};

Hsv to_hsv(int r, int g, int b) {
  const int high = std::max(r, std::max(g, b)), chroma = high - std::min(r, std::min(g, b));
  const float span = static_cast<float>(std::max(chroma, 1));
  const float from_r = static_cast<float>(high - r) / span, from_g = static_cast<float>(high - g) / span,
              from_b = static_cast<float>(high - b) / span;
  // Sixths of the circle from the largest channel's own hue. All three are computed, so that there is no branch.
  const float if_r = from_b - from_g, if_g = static_cast<float>(2.0 + from_r - from_b),
              if_b = static_cast<float>(4.0 + from_g - from_r);
  const float not_r = g == high ? if_g : if_b;
  const float sixths = r == high ? if_r : not_r;
  const double turns = sixths / 6.0 + 1.0;
  const float hue = static_cast<float>(turns - static_cast<int>(turns));
  const float saturation = static_cast<float>(chroma) / static_cast<float>(std::max(high, 1));
  return {chroma == 0 ? 0 : static_cast<int>(hue * 255.0), static_cast<int>(saturation * 255.0), high};
}

// Channel c (0, 1, 2) is high within one sixth of its own hue (0, 2, 4), low beyond two, linear between (Smith 1978).
uint8_t channel_level(const Hsv& colour, int c) {
  const double sixths = colour.hue * 6.0 / 255.0, away = std::fabs(sixths - 2 * c), distance = std::min(away, 6 - away);
  const float below = static_cast<float>(std::min(std::max(distance - 1, 0.0), 1.0));
  const float saturation = static_cast<float>(colour.saturation / 255.0);
  return static_cast<uint8_t>(static_cast<int>(colour.value * (1.0 - saturation * below) + 0.5));
}

// in, out: [3,pixels]
void turn_hue(const uint8_t* __restrict in, uint8_t* __restrict out, int64_t pixels, int steps) {
  for (int64_t i = 0; i < pixels; ++i) {
    Hsv colour = to_hsv(in[i], in[i + pixels], in[i + 2 * pixels]);
    colour.hue = (colour.hue + steps) & 255;
    for (int c = 0; c < 3; ++c) out[i + c * pixels] = channel_level(colour, c);
  }
}

}  // namespace

at::Tensor adjust_hue(const at::Tensor& image, double shift) {
  at::Tensor planes = byte_planes(image, "hue");
  if (planes.size(0) == 1) return planes;
  at::Tensor result = at::empty_like(planes);
  turn_hue(planes.const_data_ptr<uint8_t>(), result.data_ptr<uint8_t>(), planes.size(1) * planes.size(2),
           static_cast<int>(shift * 255));
  return result;
}

}  // namespace sparsight
