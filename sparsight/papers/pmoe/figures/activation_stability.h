// Whether neurons keep their activation signs while training changes their weights only slightly: Chowdhury et al.
// 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks",
// lemmas G.1, H.1 and I.1. With U the largest norm of a neuron's gradient, t steps with learning rate eta move a neuron
// by at most U eta t. A neuron whose inner products with all patches of a sample are at least 2 tau in magnitude keeps
// their signs while U eta t <= tau.
#pragma once

#include "sparsight/papers/pmoe/figures/pattern_runs.h"

namespace sparsight::pmoe {

struct ActivationStability {
  double covered = 0;      // fraction of covered (sample, neuron) pairs: all inner products at least 2 tau
  double predicted = 0;    // 1 - 2 e tau l / sigma, its lower bound in the lemmas (n for l without frozen routers)
  int64_t steps = 0;       // steps with U eta t <= tau
  int64_t violations = 0;  // covered pairs in which a sign changed, summed over steps; 0 by the lemmas
  double changed = 0;      // fraction of the other pairs in which a sign changed
  double move = 0;         // largest |w(t) - w(0)| of a neuron, in units of U eta t; at most 1
};

// tau is in units of sigma = 1 / sqrt(m), the standard deviation of the initial weights. Steps are full-batch on
// `train`; the learning rate is chosen so that about `steps` of them satisfy U eta t <= tau.
ActivationStability activation_stability(const PatternRun& run, const PatchSet& train, double tau, int64_t steps,
                                         uint64_t seed);

}  // namespace sparsight::pmoe
