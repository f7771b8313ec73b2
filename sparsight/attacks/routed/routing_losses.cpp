#include "sparsight/attacks/routed/routing_losses.h"

#include <functional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/moe/losses/token_sums.h"

namespace sparsight {
namespace {

// [B,S]. log_probability: [B,S,E], attached to the graph.
at::Tensor divergence(const at::Tensor& log_probability, const CleanDecision& clean) {
  return (clean.log_probability.exp() * (clean.log_probability - log_probability)).sum(2);
}

at::Tensor minus_gap(const at::Tensor& log_probability, const CleanDecision& clean) {
  const at::Tensor p = log_probability.exp(), &member = clean.member;
  // Beyond all probabilities, but finite.
  const at::Tensor inside = at::where(member, p, at::full_like(p, 2)).amin(2),
                   outside = at::where(member, at::full_like(p, -1), p).amax(2);
  const at::Tensor both = member.any(2) & ~member.all(2);
  return -at::where(both, at::relu(inside - outside), at::zeros_like(inside));
}

using TokenLoss = std::function<at::Tensor(const at::Tensor& log_probability, const CleanDecision& clean)>;

// [B]: the mean over tokens of `loss`, summed over layers.
at::Tensor sum_over_layers(const ModelOutput& output, const CleanPass& clean, const at::Tensor& row,
                           const TokenLoss& loss) {
  at::Tensor sum;
  for (const Routing& routing : output.routings) {
    const auto found = clean.decisions.find(routing.layer);
    if (found == clean.decisions.end() || !routing.clean_logits.defined()) continue;
    const TokenLayout& layout = routing.layout;
    if (layout.images != row.size(0))
      fail("the attack on the routing needs a pass over its ", row.size(0), " images alone, got ", layout.images);
    const CleanDecision here{found->second.log_probability.index_select(0, row),
                             found->second.member.index_select(0, row)};
    const at::Tensor log_probability =
        at::log_softmax(routing.clean_logits, 1).view({layout.images, layout.per_image, routing.experts});
    const at::Tensor term = loss(log_probability, here).mean(1);
    sum = sum.defined() ? sum + term : term;
  }
  if (!sum.defined())
    fail("the attack on the routing needs a model whose routers choose experts by logits; this one has none");
  return sum;
}

// []: as described in routing_losses.h.
at::Tensor dropped(const Routing& routing) {
  const at::Tensor group = group_of_token(routing).index_select(0, routing.token);
  const int64_t cells = routing.group_count * routing.experts;
  const at::Tensor soft =
      static_cast<double>(routing.per_token) * group_sums(routing, at::softmax(routing.clean_logits, 1));  // [G,E]
  const at::Tensor count = at::bincount(group * routing.experts + routing.expert, {}, cells).view_as(soft);
  const at::Tensor over = count + (soft - soft.detach()) - routing.capacity.unsqueeze(1);
  const at::Tensor full = over.detach() >= 0;
  const at::Tensor excess = full.any().item<bool>() ? at::where(full, over, at::zeros_like(over)).sum() : over.max();
  return excess / static_cast<double>(std::max<int64_t>(1, routing.expert.size(0)));
}

at::Tensor dropped_in_batch(const ModelOutput& output, int64_t images) {
  at::Tensor sum;
  for (const Routing& routing : output.routings) {
    if (!routing.capacity.defined() || !routing.clean_logits.defined()) continue;
    const at::Tensor term = dropped(routing);
    sum = sum.defined() ? sum + term : term;
  }
  if (!sum.defined())
    fail(
        "the attack on capacity needs MoE layers with a limit, but this pass drops nothing; set [capacity] "
        "eval_factor, or attack in a mode with the capacity of training");
  return sum.expand({images});
}

}  // namespace

std::vector<std::string> routing_loss_names() { return {"kl", "gate_gap", "drops"}; }

at::Tensor routing_loss(const std::string& name, const ModelOutput& output, const CleanPass& clean,
                        const at::Tensor& row) {
  switch (find_position(name, routing_loss_names(), "loss of the routing")) {
    case 0:
      return sum_over_layers(output, clean, row, divergence);
    case 1:
      return sum_over_layers(output, clean, row, minus_gap);
    default:
      return dropped_in_batch(output, row.size(0));
  }
}

}  // namespace sparsight
