// The thresholds of strictly balanced gating: each expert learns the score above which a token is among its best.
// Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", appendix F.
// Letters: moe/axes.md.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// How fast thresholds follow.
struct ThresholdOptions {
  double rate = 0.01;
  int64_t rate_decay_steps = 0;
  void declare(OptionSet& set);

  // After so many steps, for thresholds of so many experts.
  double rate_at(int64_t steps, int64_t experts) const;
};

// [E] int64: tokens whose score exceeds the threshold. scores: [N,E]; threshold: [E]; valid: [N] bool, or undefined.
at::Tensor count_passing(const at::Tensor& scores, const at::Tensor& threshold, const at::Tensor& valid);

// threshold, passed, rows: [E]. Returns [E]: threshold + rate * (passed - rows) / rows, a step down the threshold loss
// (losses/threshold.h) with a rate divided by the rows that each expert should have; unmoved where that is 0.
at::Tensor moved_threshold(const at::Tensor& threshold, const at::Tensor& passed, const at::Tensor& rows, double rate);

// The same by all routings of a step together, whose chosen_count is what the experts should have.
at::Tensor moved_threshold(const at::Tensor& threshold, const std::vector<Routing>& routings, double rate);

}  // namespace sparsight
