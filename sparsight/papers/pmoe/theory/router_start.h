// The initial norm of the routers of patch routing: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts
// is Provably Sample-efficient for Convolutional Neural Networks", section 4 and lemma E.2.
#pragma once

#include <cstdint>

#include "sparsight/papers/pmoe/two_layer/two_layer.h"

namespace sparsight::pmoe {

// Statistics of random kernels from N(0, std²), std = router_start_std.
struct RouterStart {
  double within = 0;  // fraction with a norm of at most 1/n²
  double mean_norm = 0, largest_norm = 0;
  double bound = 0;  // 1/n²
};
RouterStart router_start(int64_t patches, int64_t width, int64_t samples, uint64_t seed);

}  // namespace sparsight::pmoe
