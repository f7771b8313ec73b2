#include "sparsight/moe/routers/thresholds.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

namespace sparsight {

void ThresholdOptions::declare(OptionSet& set) {
  set.real("rate", &rate, {0, 1000}, "update rate of a threshold after each step, as a multiple of 1/experts");
  set.integer("rate_decay_steps", &rate_decay_steps, {0, std::numeric_limits<int64_t>::max()},
              "the rate is divided by 1 + steps / this; 0: constant");
}

double ThresholdOptions::rate_at(int64_t steps, int64_t experts) const {
  const double start = rate / static_cast<double>(experts);
  if (rate_decay_steps == 0) return start;
  return start / (1 + static_cast<double>(steps) / static_cast<double>(rate_decay_steps));
}

at::Tensor count_passing(const at::Tensor& scores, const at::Tensor& threshold, const at::Tensor& valid) {
  at::Tensor passes = scores.detach() > threshold.detach();
  if (valid.defined()) passes = passes.logical_and(valid.unsqueeze(1));
  return passes.sum(0);
}

at::Tensor moved_threshold(const at::Tensor& threshold, const at::Tensor& passed, const at::Tensor& rows, double rate) {
  const at::Tensor wanted = rows.to(at::kDouble);
  const at::Tensor excess = (passed.to(at::kDouble) - wanted) / wanted.clamp_min(1);
  return threshold + (rate * excess.masked_fill(wanted == 0, 0)).to(threshold.scalar_type());
}

at::Tensor moved_threshold(const at::Tensor& threshold, const std::vector<Routing>& routings, double rate) {
  const at::NoGradGuard no_grad;
  at::Tensor passed = at::zeros(threshold.sizes(), threshold.options().dtype(at::kLong)), rows = at::zeros_like(passed);
  for (const Routing& routing : routings) {
    passed += count_passing(routing.scores, threshold, routing.valid);
    rows += routing.chosen_count;
  }
  return moved_threshold(threshold, passed, rows, rate);
}

}  // namespace sparsight
