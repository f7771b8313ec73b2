#include "sparsight/data/transforms/color.h"

#include <algorithm>
#include <array>

#include "sparsight/core/shuffle.h"
#include "sparsight/data/transforms/pixel_ops.h"

namespace sparsight {

void ColorJitterOptions::declare(OptionSet& set) {
  set.real("brightness", &brightness, {0, 10}, "largest change of the brightness factor from 1");
  set.real("contrast", &contrast, {0, 10}, "largest change of the contrast factor from 1");
  set.real("saturation", &saturation, {0, 10}, "largest change of the saturation factor from 1");
  set.real("hue", &hue, {0, 0.5}, "largest shift of the hue, in turns of the colour circle");
}

void GrayscaleOptions::declare(OptionSet& set) {
  set.real("probability", &probability, {0, 1}, "how often an image loses its colour");
}

TransformOp make_color_jitter(const ColorJitterOptions& options) {
  return [=](const at::Tensor& image, RandomStream& random) {
    const auto factor = [&](double width) { return random.uniform(std::max(0.0, 1 - width), 1 + width); };
    std::array<int, 4> order{0, 1, 2, 3};
    shuffle(order, random);
    at::Tensor result = byte_planes(image, "color_jitter");
    for (const int step : order) {
      if (step == 0 && options.brightness > 0) result = adjust_brightness(result, factor(options.brightness));
      if (step == 1 && options.contrast > 0) result = adjust_contrast(result, factor(options.contrast));
      if (step == 2 && options.saturation > 0) result = adjust_saturation(result, factor(options.saturation));
      if (step == 3 && options.hue > 0) result = adjust_hue(result, random.uniform(-options.hue, options.hue));
    }
    return result;
  };
}

TransformOp make_grayscale(const GrayscaleOptions& options) {
  return [=](const at::Tensor& image, RandomStream& random) {
    return random.uniform() < options.probability ? grayscale(image) : image;
  };
}

}  // namespace sparsight
