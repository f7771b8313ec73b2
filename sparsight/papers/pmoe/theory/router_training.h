// Training the routers of separate-training pMoE by equation 6, and whether they then send the pattern of a class to
// its expert: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for
// Convolutional Neural Networks", algorithm 1 (step 2) and lemmas 4.1 and E.3. Two classes: label 0 is the paper's y =
// +1.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/papers/pmoe/theory/pattern_model.h"

namespace sparsight::pmoe {

struct RouterTrainingOptions {
  int64_t steps = 400;   // T_r
  int64_t batch = 256;   // B_r; at most the number of samples, which are drawn anew in each epoch's order
  double rate = 0;       // eta_r; 0: 1/n
  double start_std = 0;  // 0: router_start_std
  uint64_t seed = 0;
};

// [2,d]: w_1, w_2. All samples in random order, batch after batch, the last one of an epoch smaller; then in another
// order.
at::Tensor train_routers(const PatternSamples& samples, const RouterTrainingOptions& options);

// [N] int64: how many patches the expert of the sample's class scores above the pattern: it is among the l best if this
// is below l. Of equal scores the lower patch comes first. routers: [2,d].
at::Tensor pattern_ranks(const PatternSamples& samples, const at::Tensor& routers);

// The share of samples whose pattern is among the `patches` best of its expert.
double routed_share(const at::Tensor& ranks, int64_t patches);

// The share of samples whose pattern its expert scores above every patch that is not closer to one of the patterns than
// (1 - delta_d) / 2 allows (lemma E.3: all of them, where the lemma holds). patterns: [2,d].
double clear_share(const PatternSamples& samples, const at::Tensor& routers, const at::Tensor& patterns,
                   double separation);

}  // namespace sparsight::pmoe
