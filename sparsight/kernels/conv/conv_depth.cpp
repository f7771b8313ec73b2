#include "sparsight/kernels/conv/conv_depth.h"

namespace sparsight::cpu {
namespace {

// Calls body(Range) for as few parts of nearly equal size as have at most `limit` elements.
template <class Body>
void split(int64_t whole, int64_t limit, const Body& body) {
  const int64_t count = (whole + limit - 1) / limit;
  for (int64_t i = 0; i < count; ++i) body(Range{i * whole / count, (i + 1) * whole / count});
}

}  // namespace

std::vector<DepthPart> depth_parts(int64_t kernel, int64_t channels, int64_t limit) {
  const int64_t rows_at_once = std::max<int64_t>(1, limit / (kernel * channels)),
                taps_at_once = std::clamp<int64_t>(limit / channels, 1, kernel);
  std::vector<DepthPart> parts;
  split(kernel, rows_at_once, [&](Range rows) {
    split(kernel, taps_at_once, [&](Range taps) {
      split(channels, limit, [&](Range part) { parts.push_back({rows, taps, part}); });
    });
  });
  return parts;
}

Range reached(Range taps, int64_t stride, int64_t zeros, int64_t side, Range of) {
  const auto divided_up = [stride](int64_t x) { return x <= 0 ? 0 : (x + stride - 1) / stride; };
  return {std::max(of.first, divided_up(zeros - taps.last + 1)),
          std::min(of.last, divided_up(side + zeros - taps.first))};
}

}  // namespace sparsight::cpu
