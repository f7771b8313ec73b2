#include "sparsight/analysis/colour_scale.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace sparsight {

Rgb viridis(double share) {
  static constexpr Rgb kStops[] = {{68, 1, 84},    {68, 57, 131},  {49, 104, 142}, {33, 145, 140},
                                   {53, 183, 121}, {144, 215, 67}, {253, 231, 37}};
  const double at = std::clamp(share, 0.0, 1.0) * (std::size(kStops) - 1);
  const size_t below = std::min<size_t>(static_cast<size_t>(at), std::size(kStops) - 2);
  Rgb colour;
  for (size_t c = 0; c < 3; ++c)
    colour[c] = static_cast<uint8_t>(
        std::lround(kStops[below][c] + (at - static_cast<double>(below)) * (kStops[below + 1][c] - kStops[below][c])));
  return colour;
}

}  // namespace sparsight
