// The data distribution of the theory of patch-level routing: Chowdhury et al. 2023, "Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", section 4.2 and appendix M. A
// sample is n unit vectors of width d. One of them, at a random position, is the pattern o_i that determines the label
// i. The others are irrelevant: they are sampled from p small sets, in the same way for all classes, and the members of
// a set have the same inner products with all o_i. The paper only states constraints; the samples here meet them
// exactly.
// Differs from the paper: labels alternate, so classes are exactly balanced, instead of random with probability 1/2.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/papers/pmoe/two_layer/patch_set.h"

namespace sparsight::pmoe {

struct PatternModelOptions {
  int64_t patches = 16;                   // n
  int64_t width = 64;                     // d >= classes + 2
  int64_t classes = 2;                    // c
  double separation = 0;                  // delta_d = <o_i, o_j> for all i != j; -1/(c-1) < delta_d < 1
  double relevance = 0.25;                // delta_r: no |<o_i, q>| of an irrelevant q is larger; 0 <= delta_r < 1
  std::vector<std::vector<double>> sets;  // [p][c]: <o_i, q> of the members of each set
  int64_t confuser_sets = 0;              // how many of the first sets are confusers. Each sample picks one of them
  int64_t confusers = 0;                  // uniformly and has this many patches from it; the rest are ordinary
  double diameter = 1;                    // kappa: of the sets, in units of sqrt((1 - delta_r²) / (d p²))
  bool rotate = true;                     // apply one random rotation to everything
  uint64_t seed = 0;
};

// EASY profile: n = 16, d = 64, delta_d = 0, eight sets whose inner products are uniform in [-0.25, 0.25]. Every
// irrelevant patch is farther from both patterns than they are from each other (l* = 1).
PatternModelOptions easy_patterns(uint64_t seed);
// HARD profile: n = 16, d = 64, delta_d = 0.5, delta_r = 0.4. Each sample has five confusers, which are closer to one
// pattern than the other pattern is (l* = 6), and ten patches from six ordinary sets.
PatternModelOptions hard_patterns(uint64_t seed);

struct PatternSamples {
  at::Tensor patches;   // [N,n,d] fp64, unit vectors
  at::Tensor labels;    // [N] int64: 0, 1, ..., c-1, 0, ...
  at::Tensor position;  // [N] int64: index of the patch with the pattern
  at::Tensor set;       // [N,n] int64: the set of each irrelevant patch, -1 at the pattern
};

// The samples in fp32, for training. classes: c.
PatchSet patch_set(const PatternSamples& samples, int64_t classes);

class PatternModel {
 public:
  // Raises UsageError if no vectors can meet the options; the message says which option and by how much.
  explicit PatternModel(const PatternModelOptions& options);

  // Sample i of a split (`part`) is a pure function of (seed, part, i).
  PatternSamples sample(const std::string& part, int64_t count) const;

  int64_t sets() const { return static_cast<int64_t>(options_.sets.size()); }  // p
  const at::Tensor& patterns() const { return patterns_; }                     // [c,d] fp64: o_1 .. o_c
  double delta() const;             // 1 / (1 - max(delta_d², delta_r²)), equation 9
  double largest_diameter() const;  // kappa sqrt((1 - delta_r²) / (d p²))

 private:
  PatternModelOptions options_;
  at::Tensor patterns_, rotation_;                    // [c,d], [d,d]
  std::vector<std::vector<double>> inside_, centre_;  // [p][c], [p][d-c]: coordinates of each set's centre in the span
                                                      // of the patterns, and a unit vector orthogonal to it
};

// l*: 1 + the maximum over samples of the number of irrelevant patches whose inner products with two patterns differ by
// more than (1 - delta_d) / 2 (section 4.2; patches closer to either pattern count).
int64_t needed_patches(const PatternSamples& samples, const at::Tensor& patterns, double separation);

}  // namespace sparsight::pmoe
