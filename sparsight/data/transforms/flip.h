// Horizontal flip.
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct FlipOptions {
  double probability = 0.5;
  void declare(OptionSet& set);
};

// Flips left and right with the given probability.
TransformOp make_flip(const FlipOptions& options);

}  // namespace sparsight
