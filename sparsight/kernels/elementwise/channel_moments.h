// Means and variances of feature maps, channels last, in parts that threads compute and that are combined in one order.
#pragma once

#include <cstdint>

namespace sparsight::cpu {

// The moments of one channel's values in one row of a map.
struct ChannelMoments {
  float mean = 0;
  float squares = 0;  // sum of (value - mean)²
};

// x: `width` positions, ld floats apart, of `channels` values. Sets moments [channels].
void channel_moments(const float* x, int64_t width, int64_t ld, int64_t channels, ChannelMoments* moments);

// The moments [rows, channels] of all rows of a map.
struct MapMoments {
  const ChannelMoments* rows = nullptr;
  int64_t count = 0, channels = 0;
  int64_t width = 0;  // values of each
  int64_t groups = 1;
  double epsilon = 0;
};

// Group norm as y = scale x + shift. weight, bias, scale, shift: [channels]. Rows are combined as in Chan, Golub and
// LeVeque 1983, "Algorithms for Computing the Sample Variance", equation 1.5b.
void group_scales(const MapMoments& moments, const float* weight, const float* bias, float* scale, float* shift);

}  // namespace sparsight::cpu
