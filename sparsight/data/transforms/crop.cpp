#include "sparsight/data/transforms/crop.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <ATen/ops/constant_pad_nd.h>

#include "sparsight/data/transforms/resize.h"

namespace sparsight {
namespace {

// The side of a crop of `size`, where 0 is the image's shorter side.
int64_t crop_side(const at::Tensor& image, int64_t size) {
  return size > 0 ? size : std::min(image.size(1), image.size(2));
}

at::Tensor crop(const at::Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  return image.slice(1, top, top + height).slice(2, left, left + width);
}

void check_fits(const char* op, const at::Tensor& image, int64_t size) {
  if (image.size(1) < size || image.size(2) < size)
    fail_usage(op, " needs images of at least ", size, "x", size, " pixels, got ", image.size(1), "x", image.size(2),
               "; resize before it");
}

}  // namespace

void CenterCropOptions::declare(OptionSet& set) {
  set.integer("size", &size, {0, 65536}, "side of the crop in pixels; 0: as the data has it");
}

void RandomCropOptions::declare(OptionSet& set) {
  set.integer("size", &size, {1, 65536}, "side of the crop in pixels");
  set.integer("padding", &padding, {0, 65536}, "pixels added on each side before cropping");
  set.choice("padding_mode", &padding_mode, {"constant", "reflect"},
             "the added pixels are `fill`, or the image mirrored at its edges, as in torchvision");
  set.integer("fill", &fill, {0, 255}, "value of the added pixels with padding_mode = \"constant\"");
}

void RandomResizedCropOptions::declare(OptionSet& set) {
  set.integer("size", &size, {0, 65536}, "side of the result in pixels; 0: as the data has it");
  set.floats("scale", &scale, {1e-4, 1}, "smallest and largest part of the image's area");
  set.floats("ratio", &ratio, {1e-2, 1e2}, "smallest and largest width / height");
  set.choice("filter", &filter, resize_filters(), "interpolation, antialiased");
}

TransformOp make_center_crop(const CenterCropOptions& options) {
  TransformOp op = [=](const at::Tensor& image, RandomStream&) {
    const int64_t size = crop_side(image, options.size);
    check_fits("center_crop", image, size);
    return crop(image, (image.size(1) - size) / 2, (image.size(2) - size) / 2, size, size);
  };
  op.compiled =
      std::vector<engine::PreprocessStep>{{engine::PreprocessStep::Kind::center_crop, options.size, options.size}};
  return op;
}

namespace {

// The positions first .. first + count - 1 of an axis of `side` pixels, mirrored at its edges without repeating them.
at::Tensor mirrored_positions(int64_t first, int64_t count, int64_t side) {
  const at::Tensor positions = at::empty({count}, at::kLong);
  auto* const at_edge = positions.data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = std::abs(first + i);
    at_edge[i] = position < side ? position : 2 * (side - 1) - position;
  }
  return positions;
}

// A crop of the image with `padding` mirrored pixels on each side.
at::Tensor random_mirrored_crop(const at::Tensor& image, const RandomCropOptions& options, RandomStream& random) {
  const int64_t p = options.padding, size = options.size, h = image.size(1), w = image.size(2);
  if (p >= std::min(h, w))
    fail_usage("random_crop with padding_mode = \"reflect\" needs a padding below the image's sides, got padding = ", p,
               " for ", h, "x", w, " pixels");
  if (h + 2 * p < size || w + 2 * p < size) check_fits("random_crop", image, size - 2 * p);
  const int64_t top = random.below(h + 2 * p - size + 1) - p, left = random.below(w + 2 * p - size + 1) - p;
  return image.index_select(1, mirrored_positions(top, size, h)).index_select(2, mirrored_positions(left, size, w));
}

}  // namespace

TransformOp make_random_crop(const RandomCropOptions& options) {
  return [=](const at::Tensor& image, RandomStream& random) {
    if (options.padding_mode == "reflect") return random_mirrored_crop(image, options, random);
    const int64_t p = options.padding;
    const at::Tensor padded =
        p > 0 ? at::constant_pad_nd(image, {p, p, p, p}, static_cast<double>(options.fill)) : image;
    check_fits("random_crop", padded, options.size);
    const int64_t top = random.below(padded.size(1) - options.size + 1);
    const int64_t left = random.below(padded.size(2) - options.size + 1);
    return crop(padded, top, left, options.size, options.size);
  };
}

TransformOp make_random_resized_crop(const RandomResizedCropOptions& options) {
  check_range("random_resized_crop", "scale", options.scale);
  check_range("random_resized_crop", "ratio", options.ratio);
  return [=](const at::Tensor& image, RandomStream& random) {
    const int64_t h = image.size(1), w = image.size(2), size = crop_side(image, options.size);
    const double area = static_cast<double>(h * w);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double target = area * random.uniform(options.scale[0], options.scale[1]);
      const double ratio = std::exp(random.uniform(std::log(options.ratio[0]), std::log(options.ratio[1])));
      const int64_t width = std::llround(std::sqrt(target * ratio)), height = std::llround(std::sqrt(target / ratio));
      if (width < 1 || height < 1 || width > w || height > h) continue;
      const int64_t top = random.below(h - height + 1), left = random.below(w - width + 1);
      return resize_image(crop(image, top, left, height, width), size, size, options.filter);
    }
    const double aspect = static_cast<double>(w) / static_cast<double>(h);
    const double legal = std::clamp(aspect, options.ratio[0], options.ratio[1]);
    const int64_t width = aspect > legal ? std::llround(static_cast<double>(h) * legal) : w;
    const int64_t height = aspect < legal ? std::llround(static_cast<double>(w) / legal) : h;
    return resize_image(crop(image, (h - height) / 2, (w - width) / 2, height, width), size, size, options.filter);
  };
}

}  // namespace sparsight
