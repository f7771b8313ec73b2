// The thresholds of strictly balanced gating: each expert learns the score above which a token is among its best.
// Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", appendix F.
// Letters: moe/axes.md.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// The learning rate of the thresholds.
struct ThresholdOptions {
  double rate = 0.01;
  int64_t rate_decay_steps = 0;
  void declare(OptionSet& set);

  // The rate after `steps` steps, for the thresholds of `experts` experts.
  double rate_at(int64_t steps, int64_t experts) const;
};

// [E] int64: tokens whose score exceeds the threshold. scores: [N,E]; threshold: [E]; valid: [N] bool, or undefined.
at::Tensor count_passing(const at::Tensor& scores, const at::Tensor& threshold, const at::Tensor& valid);

// threshold, passed, rows: [E]. Returns [E]: threshold + rate * (passed - rows) / rows, a gradient step on the
// threshold loss (losses/balance.h) with the rate divided by the target number of rows; unchanged where that is 0.
at::Tensor moved_threshold(const at::Tensor& threshold, const at::Tensor& passed, const at::Tensor& rows, double rate);

// The same over all routings of a step, whose chosen_count is the target number of rows.
at::Tensor moved_threshold(const at::Tensor& threshold, const std::vector<Routing>& routings, double rate);

}  // namespace sparsight
