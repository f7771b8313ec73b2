// Whether neurons keep their activation signs while training moves their weights little: Chowdhury et al. 2023,
// "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", lemmas
// G.1, H.1 and I.1. With U the largest norm of a neuron's gradient, t steps of rate eta move a neuron by at most U eta
// t; one whose products with all patches of a sample are at least 2 tau in size keeps their signs while that is at most
// tau.
#pragma once

#include "sparsight/papers/pmoe/figures/pattern_runs.h"

namespace sparsight::pmoe {

struct ActivationStability {
  double covered = 0;      // share of (sample, neuron) pairs with all products at least 2 tau: they are covered
  double predicted = 0;    // 1 - 2 e tau l / sigma, the lemmas' lower bound for it (n for l, but with frozen routers)
  int64_t steps = 0;       // taken while U eta t <= tau
  int64_t violations = 0;  // covered pairs of which a sign changed in a step: none, where the lemmas hold
  double changed = 0;      // share of the other pairs of which a sign changed
  double move = 0;         // the largest |w(t) - w(0)| of a neuron, in units of U eta t: at most 1
};

// tau in units of sigma = 1 / sqrt(m), the standard deviation of initial weights. Steps take all of `train`; their rate
// is such that about `steps` of them fit.
ActivationStability activation_stability(const PatternRun& run, const PatchSet& train, double tau, int64_t steps,
                                         uint64_t seed);

}  // namespace sparsight::pmoe
