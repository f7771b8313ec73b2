// The data distribution of the patch routing theory with one property varied, the others as in the EASY profile:
// Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional
// Neural Networks", section 4.2.
#pragma once

#include "sparsight/papers/pmoe/theory/pattern_model.h"

namespace sparsight::pmoe {

struct PatternSweep {
  int64_t patches = 16;     // n
  int64_t width = 64;       // d
  int64_t sets = 8;         // p
  double separation = 0;    // delta_d
  double relevance = 0.25;  // delta_r: the sets' inner products are uniform in [-delta_r, delta_r]
};

// PatternModel raises UsageError if no vectors have these inner products.
PatternModelOptions swept_patterns(const PatternSweep& sweep, uint64_t seed);

// Samples with a second patch that is only correlated with the label: one irrelevant patch of each sample, at a random
// position, becomes u_k. k is the label with probability `share`, otherwise the other class. u_0 and u_1 are unit
// vectors orthogonal to each other and to all patterns. Random numbers depend on (seed, part, sample index); u depends
// on the seed only.
struct PlantedSamples {
  PatternSamples samples;
  at::Tensor planted;  // [N] int64: index of the planted patch
};
PlantedSamples plant_spurious(const PatternSamples& samples, const at::Tensor& patterns, double share,
                              const std::string& part, uint64_t seed);

}  // namespace sparsight::pmoe
