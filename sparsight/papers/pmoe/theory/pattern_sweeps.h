// The distribution of patch routing with one property varied and the others as in the EASY profile: Chowdhury et al.
// 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks",
// section 4.2.
#pragma once

#include "sparsight/papers/pmoe/theory/pattern_model.h"

namespace sparsight::pmoe {

struct PatternSweep {
  int64_t patches = 16;     // n
  int64_t width = 64;       // d
  int64_t sets = 8;         // p
  double separation = 0;    // delta_d
  double relevance = 0.25;  // delta_r: products of sets anywhere within it
};

// Raises UsageError (PatternModel) where no vectors can have these products.
PatternModelOptions swept_patterns(const PatternSweep& sweep, uint64_t seed);

// Samples in which a second patch only goes with the label: one irrelevant patch of each, at any place, becomes u_k, k
// its label with probability `share`, else the other one. u_0 and u_1 are unit vectors orthogonal to each other and to
// all patterns. The draws are functions of (seed, part, number of the sample); u depends on the seed alone.
struct PlantedSamples {
  PatternSamples samples;
  at::Tensor planted;  // [N] int64: where
};
PlantedSamples plant_spurious(const PatternSamples& samples, const at::Tensor& patterns, double share,
                              const std::string& part, uint64_t seed);

}  // namespace sparsight::pmoe
