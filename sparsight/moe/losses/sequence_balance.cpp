#include "sparsight/moe/losses/sequence_balance.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/moe/losses/token_sums.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {

at::Tensor sequence_balance_loss(const Routing& routing) {
  if (!routing.scores.defined() || routing.per_token == 0 || routing.varying) return {};
  Routing by_image = routing;
  set_consecutive_groups(by_image, routing.layout.per_image);  // 0 without a layout: the batch is one sequence
  const at::Tensor best = top_experts(routing.scores, routing.per_token);
  const at::Tensor chosen = at::zeros_like(routing.scores.detach()).scatter(1, best, 1);
  const at::Tensor share = routing.scores / routing.scores.sum(1, /*keepdim=*/true).clamp_min(1e-20);
  const at::Tensor size = group_sizes(by_image).clamp_min(1).unsqueeze(1);
  const double scale = static_cast<double>(routing.experts) / static_cast<double>(routing.per_token);
  return group_mean(by_image,
                    (group_sums(by_image, chosen) / size * scale * (group_sums(by_image, share) / size)).sum(1));
}

}  // namespace sparsight
