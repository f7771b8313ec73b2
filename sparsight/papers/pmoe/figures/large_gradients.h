// How many neurons have a large expected gradient: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is
// Provably Sample-efficient for Convolutional Neural Networks", lemmas G.2, G.3, H.2, H.3, I.2 and I.3. Measured
// at initialisation, where the gradient equals the lemmas' pseudo-gradient.
#pragma once

#include "sparsight/papers/pmoe/figures/pattern_runs.h"

namespace sparsight::pmoe {

struct LargeGradients {
  double share = 0;      // fraction of neurons with norm >= v_s / (l p sqrt(delta)), minimum over experts
  double gamma = 0;      // 1 / (p sqrt(delta)), the lemmas' bound up to a constant
  double threshold = 0;  // of the expert with the minimum
};

// Uses the mean gradient over `train`, which should be large. v_s is v_1 or v_2, by expert (separate), their maximum
// (CNN), or the maximum over classes i of p_is E[G v | class i] (joint).
LargeGradients large_gradients(const PatternRun& run, const PatternModel& model, const PatchSet& train, uint64_t seed);

}  // namespace sparsight::pmoe
