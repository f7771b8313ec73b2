#include "sparsight/data/transforms/affine.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/ops/empty_like.h>

#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {
namespace {

// Where one of four neighbours of a point is, from the one before its left or upper one: positions outside repeat the
// border. `offset`: of the point from its left or upper neighbour.
struct Neighbours {
  std::array<int64_t, 4> at;
  double offset;
};

// coordinate: of the point, in an image of `length` pixels along this axis.
Neighbours find_neighbours(double coordinate, int64_t length) {
  const double from_centre = coordinate - 0.5, floor = std::floor(from_centre);
  const int64_t first = static_cast<int64_t>(floor) - 1;
  Neighbours result{{}, from_centre - floor};
  for (int64_t i = 0; i < 4; ++i) result.at[static_cast<size_t>(i)] = std::clamp<int64_t>(first + i, 0, length - 1);
  return result;
}

// The cubic through four values with a = -1, in the order of Pillow's arithmetic.
double cubic(double v1, double v2, double v3, double v4, double d) {
  const double p2 = -v1 + v3, p3 = 2 * (v1 - v2) + v3 - v4, p4 = -v1 + v2 - v3 + v4;
  return v2 + d * (p2 + d * (p3 + d * p4));
}

// At offset 0 the cubic is its second value exactly: shears and shifts along one axis read one line of four.
double bicubic_at(const uint8_t* plane, int64_t width, const Neighbours& x, const Neighbours& y) {
  const auto along_row = [&](size_t line) -> double {
    const uint8_t* const row = plane + y.at[line] * width;
    if (x.offset == 0) return row[x.at[1]];
    return cubic(row[x.at[0]], row[x.at[1]], row[x.at[2]], row[x.at[3]], x.offset);
  };
  if (y.offset == 0) return along_row(1);
  return cubic(along_row(0), along_row(1), along_row(2), along_row(3), y.offset);
}

uint8_t as_level(double value) { return value <= 0 ? 0 : value >= 255 ? 255 : static_cast<uint8_t>(value); }

// Pillow rounds the matrix of a rotation to 15 decimals.
double to_15_decimals(double value) { return std::round(value * 1e15) / 1e15; }

}  // namespace

at::Tensor affine_bicubic(const at::Tensor& image, const WarpMatrix& matrix, const BorderFill& fill) {
  const at::Tensor planes = byte_planes(image, "affine");
  check_fill(fill, planes.size(0));
  at::Tensor result = at::empty_like(planes);
  const int64_t channels = planes.size(0), height = planes.size(1), width = planes.size(2), pixels = height * width;
  const uint8_t* in = planes.const_data_ptr<uint8_t>();
  uint8_t* out = result.data_ptr<uint8_t>();
  const auto [a, b, c, d, e, f] = matrix;
  for (int64_t row = 0, to = 0; row < height; ++row) {
    const double y = static_cast<double>(row) + 0.5;
    for (int64_t column = 0; column < width; ++column, ++to) {
      const double x = static_cast<double>(column) + 0.5, from_x = a * x + b * y + c, from_y = d * x + e * y + f;
      if (!(from_x >= 0 && from_y >= 0 && from_x < static_cast<double>(width) &&
            from_y < static_cast<double>(height))) {
        for (int64_t plane = 0; plane < channels; ++plane) out[plane * pixels + to] = channel_fill(fill, plane);
        continue;
      }
      const Neighbours across = find_neighbours(from_x, width), down = find_neighbours(from_y, height);
      for (int64_t plane = 0; plane < channels; ++plane)
        out[plane * pixels + to] = as_level(bicubic_at(in + plane * pixels, width, across, down));
    }
  }
  return result;
}

at::Tensor rotate_bicubic(const at::Tensor& image, double degrees, const BorderFill& fill) {
  const double angle = -degrees * std::numbers::pi / 180;
  const double cosine = to_15_decimals(std::cos(angle)), sine = to_15_decimals(std::sin(angle));
  const double x = static_cast<double>(image.size(2)) / 2, y = static_cast<double>(image.size(1)) / 2;
  return affine_bicubic(image, {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y},
                        fill);
}

}  // namespace sparsight
