// RandAugment (Cubuk et al. 2020, "RandAugment: Practical automated data augmentation with a reduced search space"):
// a few operations sampled from a set, all with about the same strength.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct RandAugmentOptions {
  std::string operations = "torchvision";  // augmentations.h
  int64_t ops = 2;
  double magnitude = 9;
  double sigma = 0;
  double probability = 1;
  int64_t fill = 0;
  std::vector<int64_t> fill_color;
  void declare(OptionSet& set);
};

// The largest magnitude: 30 of torchvision's operations, 10 of timm's.
double largest_magnitude(const std::string& operations);

// DeiT's (timm's "rand-m9-mstd0.5-inc1") is operations = "increasing", sigma = 0.5, probability = 0.5, filled with the
// mean colour. Raises UsageError for a magnitude that the operations do not have.
TransformOp make_rand_augment(const RandAugmentOptions& options);

// The names of a set's operations: "identity", "shear_x", ...
std::vector<std::string> augmentations(const std::string& operations = "torchvision");

// Applies one of torchvision's. strength: 0..1 of its range; `mirrored` reverses its direction if it has one.
at::Tensor augment(const at::Tensor& image, const std::string& name, double strength, bool mirrored, uint8_t fill);

}  // namespace sparsight
