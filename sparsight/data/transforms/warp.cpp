#include "sparsight/data/transforms/warp.h"

#include <ATen/ops/empty_like.h>

#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {

at::Tensor warp(const at::Tensor& image, const WarpMatrix& matrix, uint8_t fill) {
  const at::Tensor planes = byte_planes(image, "warp");
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
        out[plane * pixels + to] = inside ? in[plane * pixels + from] : fill;
    }
  }
  return result;
}

}  // namespace sparsight
