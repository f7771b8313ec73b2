#include "sparsight/serve/visible_region.h"

#include <algorithm>
#include <cmath>

namespace sparsight::serve {
namespace {

using Size = std::array<double, 2>;  // width, height

// The part of the picture that is left, and its size in the pixels it has by now.
struct Region {
  Size start{}, extent, size;

  void crop(const Size& sides) {
    for (size_t axis = 0; axis < 2; ++axis) {
      const double kept = extent[axis] * std::min(1.0, sides[axis] / size[axis]);
      start[axis] += (extent[axis] - kept) / 2;
      extent[axis] = kept;
    }
    size = sides;
  }
  void scale_by(double factor) { size = {size[0] * factor, size[1] * factor}; }
};

bool is_within_a_pixel(const Size& a, const Size& b) {
  return std::abs(a[0] - b[0]) <= 1 && std::abs(a[1] - b[1]) <= 1;
}

}  // namespace

std::array<double, 4> visible_region(const engine::Preprocessing& preprocessing, int64_t width, int64_t height) {
  const Size whole{static_cast<double>(width), static_cast<double>(height)};
  const Size wanted{static_cast<double>(preprocessing.width), static_cast<double>(preprocessing.height)};
  Region region{{}, whole, whole};
  bool fits = true;
  for (const engine::PreprocessStep& step : preprocessing.steps) {
    const double shorter = std::min(region.size[0], region.size[1]);
    const double side = step.height > 0 ? static_cast<double>(step.height) : shorter;
    if (step.kind == engine::PreprocessStep::Kind::center_crop) {
      fits = fits && side <= shorter + 1;
      region.crop({side, side});
    } else if (step.width > 0) {
      region.size = {static_cast<double>(step.width), side};
    } else {
      region.scale_by(side / shorter);
    }
  }
  if (!fits || !is_within_a_pixel(region.size, wanted)) {  // Preprocessing::run() resizes and crops by itself
    region = {{}, whole, whole};
    region.scale_by(std::max(wanted[0] / whole[0], wanted[1] / whole[1]));
    region.crop(wanted);
  }
  return {region.start[0], region.start[1], region.extent[0], region.extent[1]};
}

}  // namespace sparsight::serve
