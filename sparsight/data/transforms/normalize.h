// Normalisation: (x - mean) / std per channel, x in 0..1.
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct NormalizeOptions {
  std::string preset = "none";
  std::vector<double> mean;
  std::vector<double> std;
  void declare(OptionSet& set);
};

// Raises UsageError unless mean and std are equally long, of 1 or C values, std above 0.
TransformOp make_normalize(const NormalizeOptions& options);

}  // namespace sparsight
