// pixel_ops.h: grey, brightness, contrast, saturation, sharpness.
#include <algorithm>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/core/error.h"
#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {
namespace {

int luma(int red, int green, int blue) { return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16; }

// from + factor (to - from), clamped to 0..255 and truncated to integers, as Pillow's blend.
at::Tensor blend(const at::Tensor& from, const at::Tensor& to, double factor) {
  at::Tensor result = at::empty_like(to);
  const uint8_t *a = from.const_data_ptr<uint8_t>(), *b = to.const_data_ptr<uint8_t>();
  uint8_t* __restrict out = result.data_ptr<uint8_t>();
  const float f = static_cast<float>(factor);
  const int64_t values = to.numel();
  for (int64_t i = 0; i < values; ++i) {
    const float mixed =
        static_cast<float>(a[i]) + f * static_cast<float>(static_cast<int>(b[i]) - static_cast<int>(a[i]));
    out[i] = static_cast<uint8_t>(static_cast<int>(std::min(std::max(mixed, 0.f), 255.f)));
  }
  return result;
}

}  // namespace

at::Tensor byte_planes(const at::Tensor& image, const char* op) {
  if (image.scalar_type() != at::kByte) fail_usage(op, " works on bytes; put it before normalize");
  if (image.size(0) != 1 && image.size(0) != 3)
    fail_usage(op, " works on images of 1 or 3 channels, got ", image.size(0));
  return image.contiguous();
}

at::Tensor grayscale(const at::Tensor& image) {
  at::Tensor planes = byte_planes(image, "grayscale");
  if (planes.size(0) == 1) return planes;
  at::Tensor result = at::empty_like(planes);
  const int64_t pixels = planes.size(1) * planes.size(2);
  const uint8_t* in = planes.const_data_ptr<uint8_t>();
  uint8_t* __restrict out = result.data_ptr<uint8_t>();
  for (int64_t i = 0; i < pixels; ++i) out[i] = static_cast<uint8_t>(luma(in[i], in[i + pixels], in[i + 2 * pixels]));
  std::copy_n(out, pixels, out + pixels);
  std::copy_n(out, pixels, out + 2 * pixels);
  return result;
}

at::Tensor adjust_brightness(const at::Tensor& image, double factor) {
  const at::Tensor planes = byte_planes(image, "brightness");
  return blend(at::zeros_like(planes), planes, factor);
}

at::Tensor adjust_contrast(const at::Tensor& image, double factor) {
  const at::Tensor planes = byte_planes(image, "contrast"), grey = grayscale(planes);
  const int64_t pixels = planes.size(1) * planes.size(2);
  const uint8_t* levels = grey.const_data_ptr<uint8_t>();
  int64_t sum = 0;
  for (int64_t i = 0; i < pixels; ++i) sum += levels[i];
  const double mean = static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(1, pixels));
  return blend(at::full_like(planes, static_cast<int64_t>(mean + 0.5)), planes, factor);
}

at::Tensor adjust_saturation(const at::Tensor& image, double factor) {
  const at::Tensor planes = byte_planes(image, "saturation");
  return planes.size(0) == 1 ? planes : blend(grayscale(planes), planes, factor);
}

at::Tensor adjust_sharpness(const at::Tensor& image, double factor) {
  const at::Tensor planes = byte_planes(image, "sharpness");
  at::Tensor smooth = planes.clone();  // border pixels are unchanged
  const int64_t height = planes.size(1), width = planes.size(2);
  for (int64_t c = 0; c < planes.size(0); ++c) {
    const uint8_t* in = planes.const_data_ptr<uint8_t>() + c * height * width;
    uint8_t* out = smooth.data_ptr<uint8_t>() + c * height * width;
    for (int64_t y = 1; y + 1 < height; ++y) {
      for (int64_t x = 1; x + 1 < width; ++x) {
        const uint8_t* at = in + y * width + x;
        int sum = 4 * at[0];  // weights 1 around, 5 in the middle, of 13
        for (int64_t row = -1; row <= 1; ++row) sum += at[row * width - 1] + at[row * width] + at[row * width + 1];
        out[y * width + x] = static_cast<uint8_t>((2 * sum + 13) / 26);
      }
    }
  }
  return blend(smooth, planes, factor);
}

}  // namespace sparsight
