#include "sparsight/analysis/expert_colours.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sparsight {

Rgb expert_colour(int64_t expert) {
  static constexpr Rgb kFirst[] = {{0x00, 0x72, 0xB2}, {0xE6, 0x9F, 0x00}, {0x00, 0x9E, 0x73}, {0xCC, 0x79, 0xA7},
                                   {0x56, 0xB4, 0xE9}, {0xD5, 0x5E, 0x00}, {0xE0, 0xD0, 0x3C}, {0x8A, 0x8A, 0x8A}};
  constexpr int64_t kCount = std::size(kFirst);
  if (expert < kCount) return kFirst[std::max<int64_t>(expert, 0)];
  const double hue = std::fmod(static_cast<double>(expert - kCount) * 137.50776 + 280, 360);
  const double lightness = expert % 2 == 0 ? 0.42 : 0.64, chroma = 0.65 * (1 - std::abs(2 * lightness - 1));
  // HSL to RGB: channel n of (red 0, green 8, blue 4).
  auto channel = [&](double n) {
    const double k = std::fmod(n + hue / 30, 12);
    const double value = lightness - chroma / 2 * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<uint8_t>(std::lround(255 * value));
  };
  return {channel(0), channel(8), channel(4)};
}

std::string hex(Rgb colour) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", colour[0], colour[1], colour[2]);
  return text;
}

}  // namespace sparsight
