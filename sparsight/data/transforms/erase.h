// Random erasing (Zhong et al. 2020, "Random erasing data augmentation").
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct RandomErasingOptions {
  double probability = 0.5;
  std::vector<double> scale = {0.02, 0.33};
  std::vector<double> ratio = {0.3, 3.3};
  double value = 0;
  bool noise = false;
  void declare(OptionSet& set);
};

// Fills a random box with one value or with noise: uniform bytes before normalize, N(0,1) after it.
TransformOp make_random_erasing(const RandomErasingOptions& options);

}  // namespace sparsight
