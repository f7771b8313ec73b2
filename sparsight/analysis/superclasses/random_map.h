// Random super-classes, the baseline of semantic ones. Daxberger et al. 2023, "Mobile V-MoEs", figure 3e.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsight {

// [classes] super-class of each class: the classes in random order, cut into `groups` groups whose sizes differ by at
// most 1. The same seed gives the same map. Raises UsageError unless 1 <= groups <= classes.
std::vector<int64_t> random_superclass_map(int64_t classes, int64_t groups, uint64_t seed);

// A map with given sizes, in random order: sizes[e] classes get super-class e. Raises UsageError for no sizes or one
// below 1.
std::vector<int64_t> random_superclass_map_of_sizes(const std::vector<int64_t>& sizes, uint64_t seed);

}  // namespace sparsight
