// Horizontal flip.
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct FlipOptions {
  double probability = 0.5;
  bool alternate = false;
  void declare(OptionSet& set);
};

// Flips left and right with the given probability. With `alternate` the first epoch decides for each image, and every
// epoch after it shows the other view than the one before: Jordan 2024, "94% on CIFAR-10 in 3.29 Seconds on a Single
// GPU", section 3.6 (arXiv:2404.00498).
TransformOp make_flip(const FlipOptions& options);

}  // namespace sparsight
