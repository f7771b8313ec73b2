#include "sparsight/moe/losses/balance.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/moe/losses/token_sums.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {

namespace {

// [G,E]: assignments of each group, or only its tokens' first choices.
at::Tensor group_counts(const Routing& routing, bool first_only, const at::TensorOptions& options) {
  const at::Tensor group = group_of_token(routing).index_select(0, routing.token);
  const at::Tensor ones =
      first_only ? (routing.rank == 0).to(options.dtype()) : at::ones_like(routing.gate.detach(), options);
  return at::zeros({routing.group_count * routing.experts}, options)
      .index_add_(0, group * routing.experts + routing.expert, ones)
      .view({-1, routing.experts});
}

}  // namespace

at::Tensor switch_loss(const Routing& routing, const std::string& counts, const std::string& form) {
  if (!routing.noisy_logits.defined() || routing.per_token == 0) return {};
  const at::Tensor probability = group_sums(routing, at::softmax(routing.noisy_logits, 1));  // [G,E]
  const at::Tensor count = group_counts(routing, counts == "first", probability.options().requires_grad(false));
  const at::Tensor size = group_sizes(routing).clamp_min(1).unsqueeze(1);
  const bool is_mean = counts == "mean" || counts == "auto";
  const at::Tensor share = count / (is_mean ? size * routing.per_token : size);
  const auto experts = static_cast<double>(routing.experts);
  const at::Tensor sums = (share * (probability / size)).sum(1);
  return group_mean(routing, sums * (form == "switch" ? experts : 1 / experts));
}

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

at::Tensor threshold_loss(const Routing& routing, bool score_gradient) {
  if (!routing.threshold.defined()) return {};
  const at::Tensor plain = routing.scores.detach(), &scores = score_gradient ? routing.scores : plain;
  const at::Tensor chosen = at::zeros_like(plain)
                                .view({-1})
                                .index_fill_(0, routing.token * routing.experts + routing.expert, 1)
                                .view_as(plain);
  const at::Tensor passes = (plain > routing.threshold.detach()).to(plain.scalar_type());
  const at::Tensor loss = ordered_sum(without_padding(routing, (passes - chosen) * (scores - routing.threshold)));
  const bool of_both_levels = routing.groups && routing.groups->threshold.defined();
  return of_both_levels ? loss + threshold_loss(*routing.groups, score_gradient) : loss;
}

}  // namespace sparsight
