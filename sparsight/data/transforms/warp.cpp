#include "sparsight/data/transforms/warp.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/core/error.h"
#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {

void check_fill(const BorderFill& fill, int64_t channels) {
  if (fill.size() != 1 && std::ssize(fill) != channels)
    fail_usage("the border's fill has ", fill.size(), " levels, but the images have ", channels,
               " channels; give one for each, or one for all");
}

at::Tensor warp(const at::Tensor& image, const WarpMatrix& matrix, const BorderFill& fill) {
  const at::Tensor planes = byte_planes(image, "warp");
  check_fill(fill, planes.size(0));
  at::Tensor result = at::empty_like(planes);
  const int64_t channels = planes.size(0), height = planes.size(1), width = planes.size(2), pixels = height * width;
  const uint8_t* in = planes.const_data_ptr<uint8_t>();
  uint8_t* out = result.data_ptr<uint8_t>();
  const double middle_x = static_cast<double>(width) / 2, middle_y = static_cast<double>(height) / 2;
  const auto [a, b, c, d, e, f] = matrix;
  for (int64_t row = 0; row < height; ++row) {
    const double y = static_cast<double>(row) + 0.5 - middle_y;
    for (int64_t column = 0; column < width; ++column) {
      const double x = static_cast<double>(column) + 0.5 - middle_x;
      const double from_x = a * x + b * y + c + middle_x, from_y = d * x + e * y + f + middle_y;
      const bool inside =
          from_x >= 0 && from_y >= 0 && from_x < static_cast<double>(width) && from_y < static_cast<double>(height);
      const int64_t to = row * width + column;
      const int64_t from = inside ? static_cast<int64_t>(from_y) * width + static_cast<int64_t>(from_x) : 0;
      for (int64_t plane = 0; plane < channels; ++plane)
        out[plane * pixels + to] = inside ? in[plane * pixels + from] : channel_fill(fill, plane);
    }
  }
  return result;
}

namespace {

// The value of one plane at x and y, counted from the corner of the image, with pixel centres at halves.
uint8_t bilinear_at(const uint8_t* plane, int64_t height, int64_t width, double x, double y) {
  x -= 0.5, y -= 0.5;
  const auto column = static_cast<int64_t>(std::floor(x)), row = static_cast<int64_t>(std::floor(y));
  const auto across = [&](int64_t r) {
    const uint8_t* const pixels = plane + std::clamp<int64_t>(r, 0, height - 1) * width;
    const double left = pixels[std::clamp<int64_t>(column, 0, width - 1)];
    const double right = pixels[std::clamp<int64_t>(column + 1, 0, width - 1)];
    return left + (right - left) * (x - static_cast<double>(column));
  };
  const double above = across(row), below = across(row + 1);
  return static_cast<uint8_t>(above + (below - above) * (y - static_cast<double>(row)));
}

}  // namespace

at::Tensor rotate_bilinear(const at::Tensor& image, double degrees) {
  const at::Tensor planes = byte_planes(image, "rotate");
  if (degrees == 0) return planes.clone();
  at::Tensor result = at::zeros_like(planes);
  const int64_t channels = planes.size(0), height = planes.size(1), width = planes.size(2), pixels = height * width;
  const double angle = degrees * 3.141592653589793 / 180, cosine = std::cos(angle), sine = std::sin(angle);
  const double middle_x = static_cast<double>(width) / 2, middle_y = static_cast<double>(height) / 2;
  for (int64_t to = 0; to < pixels; ++to) {
    const double x = static_cast<double>(to % width) + 0.5 - middle_x;
    const double y = static_cast<double>(to / width) + 0.5 - middle_y;
    const double from_x = cosine * x - sine * y + middle_x, from_y = sine * x + cosine * y + middle_y;
    if (from_x < 0 || from_y < 0 || from_x >= static_cast<double>(width) || from_y >= static_cast<double>(height))
      continue;
    for (int64_t plane = 0; plane < channels; ++plane)
      result.data_ptr<uint8_t>()[plane * pixels + to] =
          bilinear_at(planes.const_data_ptr<uint8_t>() + plane * pixels, height, width, from_x, from_y);
  }
  return result;
}

}  // namespace sparsight
