// The colours of all charts: the Okabe-Ito palette, adjusted for contrast on both light and dark pages, and three more
// for as many runs as a page has.
#pragma once

#include <array>
#include <cstddef>

namespace sparsight {

inline constexpr std::array kSeriesColours{"#1f83c6", "#e0651a", "#12a57d", "#c76d9f", "#d99a00",
                                           "#56b4e9", "#8a8a8a", "#8f6fd1", "#a3703d", "#d64550"};

// They begin again after the last one.
constexpr const char* series_colour_at(size_t i) { return kSeriesColours[i % kSeriesColours.size()]; }

}  // namespace sparsight
