#include "sparsight/data/transforms/flip.h"

#include <ATen/ops/flip.h>

namespace sparsight {

void FlipOptions::declare(OptionSet& set) {
  set.real("probability", &probability, {0, 1}, "how often an image is mirrored");
  set.flag("alternate", &alternate,
           "mirror each image in every other epoch; `probability` then is the fraction that begins mirrored");
}

TransformOp make_flip(const FlipOptions& options) {
  return [=](const at::Tensor& image, ViewRandom& random) {
    RandomStream first = random.of_image;
    const bool odd_epoch = options.alternate && random.epoch % 2 != 0;
    const bool flips = (options.alternate ? first : random).uniform() < options.probability;
    return flips != odd_epoch ? at::flip(image, {2}) : image;
  };
}

}  // namespace sparsight
