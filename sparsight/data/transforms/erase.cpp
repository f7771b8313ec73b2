#include "sparsight/data/transforms/erase.h"

#include <algorithm>
#include <cmath>

namespace sparsight {
namespace {

struct Box {
  int64_t top, left, height, width;
};

template <class T, class Value>
void fill_box(at::Tensor& image, const Box& box, Value value) {
  T* data = image.data_ptr<T>();
  const int64_t height = image.size(1), width = image.size(2);
  for (int64_t c = 0; c < image.size(0); ++c)
    for (int64_t y = box.top; y < box.top + box.height; ++y)
      for (int64_t x = box.left; x < box.left + box.width; ++x)
        data[(c * height + y) * width + x] = static_cast<T>(value());
}

}  // namespace

void RandomErasingOptions::declare(OptionSet& set) {
  set.real("probability", &probability, {0, 1}, "how often a box of an image is erased");
  set.floats("scale", &scale, {1e-4, 1}, "smallest and largest part of the image's area");
  set.floats("ratio", &ratio, {1e-2, 1e2}, "smallest and largest height / width");
  set.real("value", &value, {-1000, 1000}, "what fills the box: 0..255 before normalize, in its units after it");
  set.flag("noise", &noise, "fill the box with noise instead");
}

TransformOp make_random_erasing(const RandomErasingOptions& options) {
  check_range("random_erasing", "scale", options.scale);
  check_range("random_erasing", "ratio", options.ratio);
  return [=](const at::Tensor& image, RandomStream& random) {
    if (random.uniform() >= options.probability) return image;
    const int64_t h = image.size(1), w = image.size(2);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double area = static_cast<double>(h * w) * random.uniform(options.scale[0], options.scale[1]);
      const double ratio = std::exp(random.uniform(std::log(options.ratio[0]), std::log(options.ratio[1])));
      Box box{0, 0, std::llround(std::sqrt(area * ratio)), std::llround(std::sqrt(area / ratio))};
      if (box.height < 1 || box.width < 1 || box.height >= h || box.width >= w) continue;
      box.top = random.below(h - box.height + 1);
      box.left = random.below(w - box.width + 1);
      at::Tensor erased = image.clone(at::MemoryFormat::Contiguous);  // the image may be the dataset's own memory
      if (image.scalar_type() == at::kByte) {
        const double byte = std::clamp(options.value, 0.0, 255.0);
        fill_box<uint8_t>(erased, box, [&]() -> double { return options.noise ? random.bits() & 255 : byte; });
      } else {
        fill_box<float>(erased, box, [&] { return options.noise ? random.normal() : options.value; });
      }
      return erased;
    }
    return image;
  };
}

}  // namespace sparsight
