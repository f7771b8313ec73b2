// Every image transform, by name.
#include "sparsight/core/error.h"
#include "sparsight/data/transforms/color.h"
#include "sparsight/data/transforms/corrupt.h"
#include "sparsight/data/transforms/crop.h"
#include "sparsight/data/transforms/erase.h"
#include "sparsight/data/transforms/flip.h"
#include "sparsight/data/transforms/normalize.h"
#include "sparsight/data/transforms/rand_augment.h"
#include "sparsight/data/transforms/resize.h"

namespace sparsight {

Registry<TransformOp>& transform_ops() {
  static Registry<TransformOp> registry = [] {
    Registry<TransformOp> list("transform");
    list.add<ResizeOptions>("resize", "antialiased resize", make_resize);
    list.add<CenterCropOptions>("center_crop", "the square in the middle", make_center_crop);
    list.add<RandomCropOptions>("random_crop", "a random square, with padding", make_random_crop);
    list.add<RandomResizedCropOptions>("random_resized_crop", "a part of random size and aspect, resized",
                                       make_random_resized_crop);
    list.add<FlipOptions>("flip", "left becomes right, at random", make_flip);
    list.add<ColorJitterOptions>("color_jitter", "random brightness, contrast, saturation and hue", make_color_jitter);
    list.add<GrayscaleOptions>("grayscale", "no colour, at random", make_grayscale);
    list.add<RandAugmentOptions>("rand_augment", "random operations of one strength", make_rand_augment);
    list.add<RandomErasingOptions>("random_erasing", "a random box filled with one value or noise",
                                   make_random_erasing);
    list.add<CorruptOptions>("corrupt", "a common corruption, such as noise, blur or fog", make_corrupt);
    list.add<NormalizeOptions>("normalize", "what the model normalises by: subtract the mean, divide by the deviation",
                               make_normalize);
    return list;
  }();
  return registry;
}

void check_range(const char* op, const char* key, const std::vector<double>& range) {
  if (range.size() != 2 || range[0] > range[1]) fail_usage(op, " needs ", key, " = [smallest, largest]");
}

}  // namespace sparsight
