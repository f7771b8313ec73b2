// RandAugment (Cubuk et al. 2020, "RandAugment: Practical automated data augmentation with a reduced search space"):
// a few operations sampled from a list of 14, all with the same strength.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct RandAugmentOptions {
  int64_t ops = 2;
  double magnitude = 9;
  int64_t fill = 0;
  void declare(OptionSet& set);
};

// Ranges of the strengths as in torchvision. Differs from it: shear is about the image's centre.
TransformOp make_rand_augment(const RandAugmentOptions& options);

// The 14 names: "identity", "shear_x", ...
const std::vector<std::string>& augmentations();

// Applies one of them. strength: 0..1 of its range; `mirrored` reverses its direction if it has one.
at::Tensor augment(const at::Tensor& image, const std::string& name, double strength, bool mirrored, uint8_t fill);

}  // namespace sparsight
