// The depth of a convolution in parts, and the outputs that a part reaches: products with the zeros around a map are
// left out, which are a fifth of all for 3 x 3 kernels on maps of 7 x 7. No torch types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sparsight::cpu {

// From the first to before the last.
struct Range {
  int64_t first = 0, last = 0;
  int64_t size() const { return std::max<int64_t>(0, last - first); }
  bool operator==(const Range&) const = default;
};

// Some channels of some taps (columns) of some rows of the kernel, contiguous in a padded map: several rows only with
// all their taps, several taps only with all their channels.
struct DepthPart {
  Range rows, taps, channels;
  bool operator==(const DepthPart&) const = default;
};

// Parts of at most `limit` inputs, in the order of the depth (row, tap, channel).
std::vector<DepthPart> depth_parts(int64_t kernel, int64_t channels, int64_t limit);

// Those of the outputs `of` for which one of `taps` lies on the map and not on the zeros around it, along one axis:
// output o and tap t read position o * stride + t - zeros of `side`.
Range reached(Range taps, int64_t stride, int64_t zeros, int64_t side, Range of);

}  // namespace sparsight::cpu
