#include "sparsight/moe/losses/load.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/erfc.h>

#include "sparsight/moe/losses/cv_squared.h"

namespace sparsight {

at::Tensor load_probability(const Routing& routing) {
  if (routing.noise_std == 0 || routing.per_token == 0) return {};
  const at::Tensor last_choice =
      routing.expert.view({routing.tokens, routing.per_token}).narrow(1, routing.per_token - 1, 1);
  const at::Tensor threshold = routing.noisy_logits.gather(1, last_choice);  // [N,1]
  // 1 - Phi(z) = erfc(z / sqrt(2)) / 2 keeps its digits in the tail, where 1 - (1 + erf) / 2 loses them all.
  return 0.5 * at::erfc((threshold - routing.clean_logits) * (std::sqrt(0.5) / routing.noise_std));
}

at::Tensor load_loss(const Routing& routing) {
  const at::Tensor probability = load_probability(routing);
  // The sum, not the mean: CV² does not depend on the scale, and an empty pool gives 0, not NaN.
  return probability.defined() ? cv_squared(probability.sum(0)) : probability;
}

}  // namespace sparsight
