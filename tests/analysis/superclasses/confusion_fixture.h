// Confusion matrices for tests of super-classes.
#pragma once

#include <vector>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "sparsight/analysis/superclasses/random_map.h"
#include "sparsight/core/random.h"

namespace sparsight::testing {

// Counts of a weak classifier of CIFAR-10 (47.6 % of 10,000 images), in the order airplane, automobile, bird, cat,
// deer, dog, frog, horse, ship, truck. Expected values of tests on it were computed from the definitions, independently
// of this library.
inline at::Tensor cifar10_confusions() {
  return at::tensor({535, 52, 56,  17, 32,  16, 28,  40,  172, 52, 40, 588, 19, 25,  14, 21,  30,  31,  80, 152,
                     104, 37, 324, 68, 116, 69, 139, 76,  40,  27, 46, 48,  59, 251, 56, 198, 157, 79,  41, 65,
                     56,  24, 125, 40, 358, 49, 178, 107, 39,  24, 23, 29,  82, 154, 67, 369, 96,  104, 41, 35,
                     12,  31, 70,  61, 90,  42, 623, 25,  19,  27, 37, 33,  51, 60,  68, 63,  45,  526, 29, 88,
                     74,  78, 13,  20, 20,  21, 15,  26,  663, 70, 52, 172, 16, 30,  11, 27,  36,  46,  89, 521},
                    at::kLong)
      .view({10, 10});
}

// 50 images of each class: each is predicted right with 0.6, else as another class, which is of its own super-class
// with probability `inside`.
inline at::Tensor planted_confusions(const std::vector<int64_t>& plan, double inside, uint64_t seed) {
  const auto classes = static_cast<int64_t>(plan.size());
  std::vector<std::vector<int64_t>> same(plan.size()), other(plan.size());
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = 0; j < classes; ++j)
      if (i != j) (plan[i] == plan[j] ? same : other)[i].push_back(j);
  RandomStream random(seed, "test.planted");
  at::Tensor counts = at::zeros({classes, classes}, at::kLong);
  int64_t* count = counts.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < classes; ++i)
    for (int image = 0; image < 50; ++image) {
      const bool right = random.uniform() < 0.6;
      const auto& among = random.uniform() < inside ? same[i] : other[i];
      const int64_t wrong = among[random.below(static_cast<int64_t>(among.size()))];
      ++count[i * classes + (right ? i : wrong)];
    }
  return counts;
}

// [classes] a plan of groups of equal or unequal sizes whose classes are not neighbours.
inline std::vector<int64_t> unordered_plan(const std::vector<int64_t>& sizes, uint64_t seed) {
  return random_superclass_map_of_sizes(sizes, seed);
}

}  // namespace sparsight::testing
