// One colour per expert, the same in pictures, charts and legends.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace sparsight {

using Rgb = std::array<uint8_t, 3>;

// The first eight are distinguishable for colour-blind readers (after Okabe and Ito, "Color universal design", 2008);
// the following ones step around the hue circle by the golden angle.
Rgb expert_colour(int64_t expert);

std::string hex(Rgb colour);  // "#0072b2"

}  // namespace sparsight
