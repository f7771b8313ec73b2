// How many neurons have a large expected gradient: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is
// Provably Sample-efficient for Convolutional Neural Networks", lemmas G.2, G.3, H.2, H.3, I.2 and I.3. At the start,
// where the gradient is the lemmas' pseudo-gradient.
#pragma once

#include "sparsight/papers/pmoe/figures/pattern_runs.h"

namespace sparsight::pmoe {

struct LargeGradients {
  double share = 0;      // of the neurons of the expert with the fewest: norm of at least v_s / (l p sqrt(delta))
  double gamma = 0;      // 1 / (p sqrt(delta)), what the lemmas promise up to a constant
  double threshold = 0;  // of the expert with the fewest
};

// The gradient over `train`, of which there should be many. v_s is v_1 or v_2 by expert (separate), their maximum
// (CNN), or the larger of p_is E[G v | class i] (joint).
LargeGradients large_gradients(const PatternRun& run, const PatternModel& model, const PatchSet& train, uint64_t seed);

}  // namespace sparsight::pmoe
