#include "sparsight/moe/losses/vmoe_load.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/softmax.h>

#include "sparsight/moe/losses/cv_squared.h"
#include "sparsight/moe/losses/normal_cdf.h"
#include "sparsight/moe/losses/token_sums.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {

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
