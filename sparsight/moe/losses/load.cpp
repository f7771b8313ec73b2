#include "sparsight/moe/losses/load.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/erfc.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/token_sums.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {

at::Tensor normal_cdf(const at::Tensor& z) { return 0.5 * at::erfc(-std::sqrt(0.5) * z); }

at::Tensor normal_cdf(const at::Tensor& difference, const at::Tensor& scale) {
  constexpr double kMinScale = 1e-6;
  return normal_cdf(difference / scale.clamp_min(kMinScale));
}

// v[k] for an expert among the top k and v[k-1] for the rest, where v[0] >= ... >= v[k] are the k+1 largest of the row.
at::Tensor kth_excluding(const at::Tensor& noisy, int64_t k) {
  const at::Tensor best = top_experts(noisy, k + 1);
  const at::Tensor chosen = at::zeros_like(noisy, noisy.options().dtype(at::kBool)).scatter(1, best.narrow(1, 0, k), 1);
  const at::Tensor values = noisy.gather(1, best);
  return at::where(chosen, values.narrow(1, k, 1), values.narrow(1, k - 1, 1));
}

at::Tensor load_probability(const Routing& routing, bool threshold_gradient) {
  if (!routing.noise_scale.defined() || !routing.clean_logits.defined() || routing.per_token == 0) return {};
  if (routing.varying) return {};  // no threshold: a token's experts are not its K best
  if (routing.per_token == routing.experts) return at::ones_like(routing.clean_logits);
  at::Tensor threshold = kth_excluding(routing.noisy_logits, routing.per_token);
  if (!threshold_gradient) threshold = threshold.detach();
  return normal_cdf(routing.clean_logits - threshold, routing.noise_scale);
}

at::Tensor smooth_load(const Routing& routing, bool threshold_gradient) {
  if (routing.smooth_load.defined()) return routing.smooth_load;
  const at::Tensor probability = load_probability(routing, threshold_gradient);
  if (!probability.defined()) return routing.chosen_count.to(routing.gate.scalar_type());
  return without_padding(routing, probability).sum(0);
}

at::Tensor load_loss(const Routing& routing, bool threshold_gradient, bool unbiased) {
  if (!routing.smooth_load.defined() && (!routing.noise_scale.defined() || routing.varying)) return {};
  if (routing.per_token == 0) return {};
  return cv_squared(smooth_load(routing, threshold_gradient), unbiased);
}

at::Tensor vmoe_load_probability(const Routing& routing, bool of_scores) {
  if (!routing.noise_scale.defined() || !routing.clean_logits.defined() || routing.per_token == 0) return {};
  if (routing.varying) return {};  // no threshold: a token's experts are not its K best
  const at::Tensor best = top_experts(routing.noisy_logits, routing.per_token);
  const at::Tensor threshold = routing.noisy_logits.gather(1, best.narrow(1, routing.per_token - 1, 1));  // [N,1]
  const at::Tensor clean = of_scores ? at::softmax(routing.clean_logits, 1) : routing.clean_logits;
  return normal_cdf(clean - threshold, routing.noise_scale);
}

at::Tensor vmoe_load_loss(const Routing& routing, bool unbiased, bool of_scores) {
  at::Tensor probability = vmoe_load_probability(routing, of_scores);
  if (!probability.defined()) return probability;
  // Sums, not means: CV² does not depend on the scale, and an empty batch gives 0, not NaN.
  return group_mean(routing, cv_squared(group_sums(routing, probability), unbiased));
}

}  // namespace sparsight
