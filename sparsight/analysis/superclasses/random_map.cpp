#include "sparsight/analysis/superclasses/random_map.h"

#include "sparsight/core/error.h"
#include "sparsight/core/shuffle.h"

namespace sparsight {

std::vector<int64_t> random_superclass_map(int64_t classes, int64_t groups, uint64_t seed) {
  if (groups < 1 || groups > classes)
    fail_usage(groups, " random super-classes of ", classes, " classes; choose 1 to ", classes);
  std::vector<int64_t> sizes(static_cast<size_t>(groups), classes / groups);
  for (int64_t e = 0; e < classes % groups; ++e) ++sizes[static_cast<size_t>(e)];
  return random_superclass_map_of_sizes(sizes, seed);
}

std::vector<int64_t> random_superclass_map_of_sizes(const std::vector<int64_t>& sizes, uint64_t seed) {
  if (sizes.empty()) fail_usage("random super-classes need the size of at least one of them");
  std::vector<int64_t> class_to_superclass;
  for (size_t e = 0; e < sizes.size(); ++e) {
    if (sizes[e] < 1) fail_usage("random super-class ", e, " has ", sizes[e], " classes; give each at least 1");
    class_to_superclass.insert(class_to_superclass.end(), static_cast<size_t>(sizes[e]), static_cast<int64_t>(e));
  }
  RandomStream random(seed, "superclasses.random");
  shuffle(class_to_superclass, random);
  return class_to_superclass;
}

}  // namespace sparsight
