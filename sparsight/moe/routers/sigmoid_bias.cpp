#include "sparsight/moe/routers/sigmoid_bias.h"

#include <algorithm>
#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/sigmoid_bias.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/nn/packed_weights.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {
namespace {

// biased: [N,E]. The same with -inf for the experts of groups that a token does not keep.
at::Tensor limited(const at::Tensor& biased, int64_t k, GroupLimit limit) {
  if (limit.groups == limit.kept) return biased;
  const int64_t tokens = biased.size(0), size = biased.size(1) / limit.groups;
  const at::Tensor by_group = biased.reshape({tokens * limit.groups, size});
  const at::Tensor best = top_experts(by_group, k / limit.kept);
  const at::Tensor score = by_group.gather(1, best).sum(1).view({tokens, limit.groups});
  const at::Tensor kept = at::zeros_like(score, torch::kBool).scatter(1, top_experts(score, limit.kept), 1);
  return biased.masked_fill(kept.repeat_interleave(size, 1).logical_not(), -std::numeric_limits<double>::infinity());
}

}  // namespace

void SigmoidBiasOptions::declare(OptionSet& set) {
  ChoiceOptions::declare(set);
  set.real("scale", &scale, {1e-6, 1e6}, "sum of a token's gates (2.5 in DeepSeek-V3)");
  set.real("rate", &rate, {0, 10}, "update rate of an expert's bias after each step");
  set.integer("freeze_after", &freeze_after, {0, std::numeric_limits<int64_t>::max()},
              "step after which the biases are frozen; 0: never");
  set.integer("groups", &groups, {1, 65536}, "number of equal groups of experts (devices)");
  set.integer("kept_groups", &kept_groups, {1, 65536}, "number of groups that a token may use");
}

Routing route_sigmoid_bias(const at::Tensor& clean, const at::Tensor& bias, int64_t k, double scale, GroupLimit limit) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = at::sigmoid(clean);
  const at::Tensor chosen = top_experts(limited(routing.scores.detach() + bias.detach(), k, limit), k);
  const at::Tensor score = routing.scores.gather(1, chosen);
  // Scores of very negative logits underflow; avoids dividing by 0.
  choose_per_token(routing, chosen, score / score.sum(1, /*keepdim=*/true).clamp_min(1e-20) * scale);
  finish_routing(routing);
  return routing;
}

at::Tensor balanced_bias(const at::Tensor& bias, const at::Tensor& count, double rate) {
  const at::Tensor counts = count.to(torch::kDouble);
  return bias + (rate * at::sign(counts.mean() - counts)).to(bias.scalar_type());
}

SigmoidBiasRouter::SigmoidBiasRouter(const SigmoidBiasOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))),
      bias(register_buffer("bias", torch::zeros({shape.experts}))),
      steps(register_buffer("steps", torch::zeros({}, torch::kLong))),
      options_(options) {
  options_.check(shape.experts);
  const SigmoidBiasOptions& o = options_;
  if (shape.experts % o.groups != 0)
    fail_usage("[router] groups ", o.groups, " does not divide [moe] experts ", shape.experts, "; choose a divisor");
  if (o.kept_groups > o.groups)
    fail_usage("[router] kept_groups ", o.kept_groups, " is above groups ", o.groups, "; lower it");
  if (o.kept_groups == o.groups) return;
  const int64_t in_reach = shape.experts / o.groups * o.kept_groups;
  for (const int64_t k : {o.of(true), o.of(false)})
    if (k % o.kept_groups != 0 || k > in_reach)
      fail_usage("[router] k = ", k, " with kept_groups = ", o.kept_groups,
                 ": k must be a multiple of kept_groups and at most ", in_reach, ", the experts in kept groups");
}

std::vector<LossWeight> SigmoidBiasRouter::default_losses() const { return {{"sequence_balance", 1e-4}}; }

Routing SigmoidBiasRouter::choose(const RouterInput& input) {
  return route_sigmoid_bias(router_logits(input.tokens, weight), bias, options_.of(input.mode.choices), options_.scale,
                            {options_.groups, options_.kept_groups});
}

void SigmoidBiasRouter::post_step_update(const std::vector<Routing>& routings) {
  if (routings.empty() || (options_.freeze_after > 0 && steps.item<int64_t>() >= options_.freeze_after)) return;
  at::Tensor count = at::zeros_like(routings[0].chosen_count);
  for (const Routing& routing : routings) count += routing.chosen_count;
  const torch::NoGradGuard no_grad;
  bias.copy_(balanced_bias(bias, count, options_.rate));
  steps += 1;
}

void SigmoidBiasRouter::initialize(const InitRandom& random) {
  init_normal(weight, kVitStd, random.stream("weight"));
  const torch::NoGradGuard no_grad;
  bias.zero_();
  steps.zero_();
}

std::unique_ptr<engine::Router> SigmoidBiasRouter::compile() const {
  return std::make_unique<engine::SigmoidBiasRouter>(
      engine::RouterLogits(linear_map(weight)), to_floats(bias),
      engine::SigmoidBiasRule{options_.of(false), options_.scale, options_.groups, options_.kept_groups});
}

RouterRemoval SigmoidBiasRouter::expert_removal() const {
  if (options_.groups > 1) return {"has its experts in groups of equal size"};
  return removable({{"weight"}, {"bias"}}, KeptRouting::gates);
}

RouterCost SigmoidBiasRouter::cost(const TokenLayout& layout) const {
  const int64_t experts = weight.size(0);  // each score has a bias
  return token_choice_cost(router_cost(weight.size(1), experts) + elementwise_cost(experts), options_.k, layout);
}

}  // namespace sparsight
