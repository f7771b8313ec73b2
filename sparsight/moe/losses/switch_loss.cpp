#include "sparsight/moe/losses/switch_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include "sparsight/moe/losses/token_sums.h"

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

}  // namespace sparsight
