// The multiply-adds of one training iteration of the two-layer models of patch-level routing, counted as they are
// executed: Chowdhury et al. 2023 ("Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for
// Convolutional Neural Networks"), table 1, equations 1, 19 and 26. Slow on purpose: one inner product at a time.
// Differs from the paper: equation 26 as printed sums over all m neurons; here over the m/k of the expert.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsight/papers/pmoe/theory/pmoe_bounds.h"

namespace sparsight::pmoe {

struct PmoeSizes {
  int64_t patches = 16;  // n
  int64_t chosen = 2;    // l, patches per expert; the CNN uses all n
  int64_t experts = 2;   // k, must divide m; the CNN has one
  int64_t neurons = 40;  // m, total over all experts
  int64_t width = 784;   // d
};

// For one sample. Multiplications by scalars (gates, output weights) and the top-l selection are not counted.
struct PmoeOperations {
  int64_t routers_forward = 0;                        // scores of all patches; none for the CNN
  int64_t experts_forward = 0;                        // neurons on the chosen patches
  int64_t experts_backward = 0;                       // gradients of all neurons, active or not
  int64_t routers_backward = 0;                       // joint training only: separate training freezes its routers
  std::vector<std::vector<double>> router_gradients;  // [k][d]
};

// How the sum over pairs of chosen patches in equation 26 is computed: as printed, or with their gate-weighted mean.
enum class RouterGradient { pairs, mean };

// On random numbers from `seed`. Raises UsageError for inconsistent sizes.
PmoeOperations count_pmoe_operations(PmoeTraining training, const PmoeSizes& sizes, RouterGradient form,
                                     uint64_t seed = 0);

}  // namespace sparsight::pmoe
