// The distribution that the theory of patch-level routing is about: Chowdhury et al. 2023, "Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", section 4.2 and appendix M. A
// sample is n unit vectors of width d. One of them, at any place, is a pattern o_i that makes the label i; the others
// are irrelevant: drawn from p small sets whose members have the same inner products with all o_i, and alike for all
// classes. The paper constrains such distributions; the draws here meet its constraints exactly.
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
  int64_t confuser_sets = 0;              // the first so many sets are confusers: each sample has `confusers` patches,
  int64_t confusers = 0;                  // all of one of them that a fair draw chooses; the others come from the rest
  double diameter = 1;                    // kappa: of the sets, in units of sqrt((1 - delta_r²) / (d p²))
  bool rotate = true;                     // turn everything by one random rotation
  uint64_t seed = 0;
};

// n = 16, d = 64, eight sets with products anywhere within 0.25, delta_d = 0: every irrelevant patch is farther from
// both patterns than they are from each other (l* = 1).
PatternModelOptions easy_patterns(uint64_t seed);
// n = 16, d = 64, delta_d = 0.5, delta_r = 0.4: five confusers a sample, closer to one pattern than the other one is
// (l* = 6), and ten of six ordinary sets.
PatternModelOptions hard_patterns(uint64_t seed);

struct PatternSamples {
  at::Tensor patches;  // [N,n,d] fp64, of length 1
  at::Tensor labels;   // [N] int64: 0, 1, ..., c-1, 0, ...
  at::Tensor place;    // [N] int64: where the pattern is
  at::Tensor set;      // [N,n] int64: the set of each irrelevant patch, -1 at the pattern
};

// The same for training, in fp32. classes: c.
PatchSet patch_set(const PatternSamples& samples, int64_t classes);

class PatternModel {
 public:
  // Raises UsageError for options that no vectors can meet, saying which and by how much.
  explicit PatternModel(const PatternModelOptions& options);

  // Sample i of a part is a pure function of (seed, part, i).
  PatternSamples draw(const std::string& part, int64_t count) const;

  int64_t sets() const { return static_cast<int64_t>(options_.sets.size()); }  // p
  const at::Tensor& patterns() const { return patterns_; }                     // [c,d] fp64: o_1 .. o_c
  double delta() const;             // 1 / (1 - max(delta_d², delta_r²)), equation 9
  double largest_diameter() const;  // kappa sqrt((1 - delta_r²) / (d p²))

 private:
  PatternModelOptions options_;
  at::Tensor patterns_, rotation_;                    // [c,d], [d,d]
  std::vector<std::vector<double>> inside_, centre_;  // [p][c], [p][d-c]: coordinates of each set's middle in the span
                                                      // of the patterns, and a unit vector across it
};

// l*: one more than the most patches of a sample that are closer to a pattern than to another one by more than
// (1 - delta_d) / 2 in inner product (section 4.2; both directions together).
int64_t needed_patches(const PatternSamples& samples, const at::Tensor& patterns, double separation);

}  // namespace sparsight::pmoe
