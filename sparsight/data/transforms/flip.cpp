#include "sparsight/data/transforms/flip.h"

#include <ATen/ops/flip.h>

namespace sparsight {

void FlipOptions::declare(OptionSet& set) {
  set.real("probability", &probability, {0, 1}, "how often an image is mirrored");
}

TransformOp make_flip(const FlipOptions& options) {
  return [=](const at::Tensor& image, RandomStream& random) {
    return random.uniform() < options.probability ? at::flip(image, {2}) : image;
  };
}

}  // namespace sparsight
