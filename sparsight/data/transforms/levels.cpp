// pixel_ops.h: the operations that map each level to another one.
#include <algorithm>
#include <array>

#include <ATen/ops/empty_like.h>

#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {
namespace {

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

// Maps the levels of each channel by find_table(histogram of the channel).
template <class FindTable>
at::Tensor map_levels(const at::Tensor& image, const char* op, FindTable find_table) {
  const at::Tensor planes = byte_planes(image, op);
  at::Tensor result = at::empty_like(planes);
  const int64_t pixels = planes.size(1) * planes.size(2);
  for (int64_t c = 0; c < planes.size(0); ++c) {
    const uint8_t* in = planes.const_data_ptr<uint8_t>() + c * pixels;
    uint8_t* out = result.data_ptr<uint8_t>() + c * pixels;
    Histogram histogram{};
    for (int64_t i = 0; i < pixels; ++i) ++histogram[in[i]];
    const Table table = find_table(histogram);
    for (int64_t i = 0; i < pixels; ++i) out[i] = table[in[i]];
  }
  return result;
}

template <class Level>
Table table_from(Level level) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(level(i));
  return table;
}

Table stretched(const Histogram& histogram) {
  int low = 0, high = 255;
  while (low < 255 && histogram[low] == 0) ++low;
  while (high > 0 && histogram[high] == 0) --high;
  if (high <= low) return table_from([](int i) { return i; });
  const double scale = 255.0 / (high - low), offset = -low * scale;
  return table_from([=](int i) {
    const double level = i * scale + offset;
    return level < 0 ? 0 : level > 255 ? 255 : static_cast<int>(level);
  });
}

Table flattened(const Histogram& histogram) {
  int64_t pixels = 0, last = 0;
  for (const int64_t count : histogram) {
    pixels += count;
    if (count > 0) last = count;
  }
  const int64_t step = (pixels - last) / 255;
  if (step == 0) return table_from([](int i) { return i; });
  Table table;
  int64_t seen = step / 2;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(std::min<int64_t>(255, seen / step));
    seen += histogram[i];
  }
  return table;
}

}  // namespace

at::Tensor posterize(const at::Tensor& image, int bits) {
  return map_levels(image, "posterize",
                    [=](const Histogram&) { return table_from([=](int i) { return i & (0xFF << (8 - bits)); }); });
}

at::Tensor solarize(const at::Tensor& image, int threshold) {
  return map_levels(image, "solarize",
                    [=](const Histogram&) { return table_from([=](int i) { return i < threshold ? i : 255 - i; }); });
}

at::Tensor solarize_add(const at::Tensor& image, int amount, int threshold) {
  return map_levels(image, "solarize_add", [=](const Histogram&) {
    return table_from([=](int i) { return i < threshold ? std::min(255, i + amount) : i; });
  });
}

at::Tensor autocontrast(const at::Tensor& image) { return map_levels(image, "autocontrast", stretched); }

at::Tensor equalize(const at::Tensor& image) { return map_levels(image, "equalize", flattened); }

}  // namespace sparsight
