// The multiply-adds of one training iteration of the two-layer models of patch-level routing, counted while they are
// done: Chowdhury et al. 2023 ("Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for
// Convolutional Neural Networks"), table 1, equations 1, 19 and 26. Slow on purpose: one inner product at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsight/papers/pmoe/theory/pmoe_bounds.h"

namespace sparsight::pmoe {

struct PmoeSizes {
  int64_t patches = 16;  // n
  int64_t chosen = 2;    // l of each expert; the CNN takes all
  int64_t experts = 2;   // k, which divides m; the CNN has one
  int64_t neurons = 40;  // m, of all experts together
  int64_t width = 784;   // d
};

// For one sample. Products with numbers (gates, output weights) and the choice of patches are not counted.
struct PmoeOperations {
  int64_t routers_forward = 0;   // scores of all patches; none for the CNN
  int64_t experts_forward = 0;   // neurons on chosen patches
  int64_t experts_backward = 0;  // gradients of the neurons, whether active or not
  int64_t routers_backward = 0;  // of joint training alone: the routers of separate training are frozen
  std::vector<std::vector<double>> router_gradients;  // [k][d]
};

// How the sum over pairs of chosen patches in equation 26 is done: as printed, or around their mean under the gates.
enum class RouterGradient { pairs, mean };

// On numbers drawn from `seed`. Raises UsageError for sizes that do not fit.
PmoeOperations count_pmoe_operations(PmoeTraining training, const PmoeSizes& sizes, RouterGradient form,
                                     uint64_t seed = 0);

}  // namespace sparsight::pmoe
