// Trains the routers of separate-training pMoE with equation 6 and checks that they send each class's pattern to its
// expert: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for
// Convolutional Neural Networks", algorithm 1 (step 2) and lemmas 4.1 and E.3. Two classes: label 0 is the paper's
// y = +1.
// Differs from the paper: steps, batch size and learning rate are options, and the samples are reused for several
// epochs; lemma 4.1 makes one pass of T_r = 1 / (1 - delta_d) steps with batches of n² / (1 - delta_d)².
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/papers/pmoe/theory/pattern_model.h"

namespace sparsight::pmoe {

struct RouterTrainingOptions {
  int64_t steps = 400;   // T_r
  int64_t batch = 256;   // B_r, capped at the number of samples
  double rate = 0;       // eta_r; 0: 1/n
  double start_std = 0;  // 0: router_start_std
  uint64_t seed = 0;
};

// [2,d]: w_1, w_2. Samples are reshuffled every epoch; the last batch of an epoch may be smaller.
at::Tensor train_routers(const PatternSamples& samples, const RouterTrainingOptions& options);

// [N] int64: the rank of the pattern, from 0, among the patches as scored by the router of the sample's class. It is in
// the top-l if this is below l. Ties go to the lower patch index. routers: [2,d].
at::Tensor pattern_ranks(const PatternSamples& samples, const at::Tensor& routers);

// Fraction of samples whose pattern is in the top-`patches` of its expert.
double routed_share(const at::Tensor& ranks, int64_t patches);

// Fraction of samples in which the pattern scores above every irrelevant patch that is not in S_c((1 - delta_d) / 2),
// that is, with |<o_1 - o_2, q>| <= (1 - delta_d) / 2. Lemma E.3 says all of them. patterns: [2,d].
double clear_share(const PatternSamples& samples, const at::Tensor& routers, const at::Tensor& patterns,
                   double separation);

}  // namespace sparsight::pmoe
