#include "sparsight/data/transforms/resize.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/empty.h>

#include "sparsight/engine/resize_bytes.h"

namespace sparsight {

const std::vector<std::string>& resize_filters() {
  static const std::vector<std::string> names{"bilinear", "bicubic"};
  return names;
}

void ResizeOptions::declare(OptionSet& set) {
  set.integers("size", &size, {0, 65536},
               "[height, width], or [shorter side] to keep the aspect; [0]: as the data has it");
  set.choice("filter", &filter, resize_filters(), "interpolation, antialiased");
}

at::Tensor resize_image(const at::Tensor& image, int64_t height, int64_t width, const std::string& filter) {
  if (image.size(1) == height && image.size(2) == width) return image;
  constexpr int64_t kMaxPixels = 100'000'000;
  // The limit holds for the result and for what is resized along x only.
  if (std::max(height, image.size(1)) > kMaxPixels / width || image.size(2) > kMaxPixels / 64)
    fail("resizing a ", image.size(2), "x", image.size(1), " image to ", width, "x", height,
         " would make more than 100 million pixels; crop it first or give resize [height, width]");
  if (image.scalar_type() == at::kByte) {
    const at::Tensor bytes = image.stride(2) == 1 ? image : image.contiguous();
    at::Tensor out = at::empty({image.size(0), height, width}, at::kByte);
    engine::resize_bytes({bytes.const_data_ptr<uint8_t>(), bytes.size(0), bytes.size(1), bytes.size(2), bytes.stride(0),
                          bytes.stride(1)},
                         height, width, filter == "bicubic", out.data_ptr<uint8_t>());
    return out;
  }
  const at::Tensor batch = image.unsqueeze(0);
  const int64_t size[] = {height, width};
  const at::Tensor resized = filter == "bicubic" ? at::_upsample_bicubic2d_aa(batch, size, /*align_corners=*/false)
                                                 : at::_upsample_bilinear2d_aa(batch, size, /*align_corners=*/false);
  return resized.squeeze(0).contiguous();
}

TransformOp make_resize(const ResizeOptions& options) {
  if (options.size.empty() || options.size.size() > 2)
    fail_usage("resize needs size = [height, width] or [shorter side], got ", options.size.size(), " numbers");
  const bool has_zero = std::ranges::find(options.size, 0) != options.size.end();
  if (has_zero && options.size.size() == 2)
    fail_usage("resize needs two sides above 0, or one of 0, got size = [", options.size[0], ", ", options.size[1],
               "]");
  TransformOp op = [=](const at::Tensor& image, RandomStream&) {
    if (has_zero) return image;
    int64_t height = options.size.front(), width = options.size.back();
    if (options.size.size() == 1) {
      const double scale = static_cast<double>(height) / static_cast<double>(std::min(image.size(1), image.size(2)));
      height = std::max<int64_t>(1, std::llround(static_cast<double>(image.size(1)) * scale));
      width = std::max<int64_t>(1, std::llround(static_cast<double>(image.size(2)) * scale));
    }
    return resize_image(image, height, width, options.filter);
  };
  op.compiled.emplace();
  if (!has_zero)
    op.compiled->push_back({engine::PreprocessStep::Kind::resize, options.size.front(),
                            options.size.size() == 2 ? options.size.back() : 0, options.filter == "bicubic"});
  return op;
}

}  // namespace sparsight
