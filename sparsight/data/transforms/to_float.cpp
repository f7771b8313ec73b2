#include "sparsight/data/transforms/to_float.h"

#include <ATen/ops/empty.h>

namespace sparsight {

namespace {

// f(byte, channel) of every value, in one hand-written pass: a chain of tensor operations would cost as much as
// decoding a small image.
template <class F>
at::Tensor map_bytes(const at::Tensor& image, const F& f) {
  const int64_t channels = image.size(0), height = image.size(1), width = image.size(2);
  at::Tensor result = at::empty({channels, height, width}, at::kFloat);
  const uint8_t* in = image.const_data_ptr<uint8_t>();
  float* out = result.data_ptr<float>();
  const int64_t step = image.stride(2);
  for (int64_t c = 0; c < channels; ++c) {
    const auto of_channel = f(c);
    for (int64_t y = 0; y < height; ++y, out += width) {
      const uint8_t* row = in + c * image.stride(0) + y * image.stride(1);
      if (step == 1) {
        for (int64_t x = 0; x < width; ++x) out[x] = of_channel(static_cast<float>(row[x]));
      } else {
        for (int64_t x = 0; x < width; ++x) out[x] = of_channel(static_cast<float>(row[x * step]));
      }
    }
  }
  return result;
}

}  // namespace

at::Tensor scale_bytes(const at::Tensor& image, const std::vector<float>& scale, const std::vector<float>& shift) {
  return map_bytes(image, [&](int64_t c) {
    const float a = scale[scale.size() == 1 ? 0 : c], b = shift[shift.size() == 1 ? 0 : c];
    return [a, b](float byte) { return byte * a + b; };
  });
}

at::Tensor to_float(const at::Tensor& image) {
  return image.scalar_type() == at::kByte ? scale_bytes(image, {1.f / 255}, {0.f}) : image.to(at::kFloat);
}

at::Tensor to_exact_float(const at::Tensor& image) {
  if (image.scalar_type() != at::kByte) return image.to(at::kFloat);
  return map_bytes(image, [](int64_t) { return [](float byte) { return byte / 255; }; });
}

}  // namespace sparsight
