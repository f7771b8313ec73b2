#include "sparsight/moe/routers/balanced_batchwise.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/expert_picks.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/expert_picks.h"
#include "sparsight/moe/routers/noisy_topk.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/nn/packed_weights.h"
#include "sparsight/ops/softmax_rows.h"

namespace sparsight {
namespace {

Routing scored(const at::Tensor& clean, const at::Tensor& threshold) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = softmax_rows(clean);
  routing.threshold = threshold;
  return routing;
}

// Each expert takes the first count[e] of its ranking.
void take(Routing& routing, const at::Tensor& ranked, const at::Tensor& count) {
  choose_per_expert(routing, ranked, count.unsqueeze(1));
  routing.gate = softmax_by_group(at_assignments(routing, routing.clean_logits), routing.token, routing.tokens);
  finish_routing(routing);
}

}  // namespace

void BalancedBatchwiseOptions::declare(OptionSet& set) {
  set.integer("k", &k, {1, 65536}, "experts per token on average; k * tokens must be a multiple of the experts");
  set.integer("eval_k", &eval_k, {0, 65536},
              "experts per token in evaluation: the best, instead of those above their thresholds; 0: by thresholds");
  ThresholdOptions::declare(set);
}

Routing route_balanced_batchwise(const at::Tensor& clean, const at::Tensor& threshold, int64_t k,
                                 const at::Tensor& valid) {
  Routing routing = scored(clean, threshold);
  const int64_t tokens = valid_tokens(valid, routing.tokens);
  if (k * tokens % routing.experts != 0)
    fail_usage("[router] strict balance of ", k, " * ", tokens, " assignments over ", routing.experts,
               " experts: k * tokens must be a multiple of [moe] experts; change the batch, router.k or moe.experts");
  take(routing, ranked_tokens(routing.scores, 1, valid),
       at::full({routing.experts}, k * tokens / routing.experts, clean.options().dtype(torch::kLong)));
  return routing;
}

Routing route_above_threshold(const at::Tensor& clean, const at::Tensor& threshold, const at::Tensor& valid) {
  Routing routing = scored(clean, threshold);
  // Tokens that exceed the threshold are first in the ranking.
  take(routing, ranked_tokens(routing.scores, 1, valid), count_passing(routing.scores, threshold, valid));
  return routing;
}

Routing route_best_experts(const at::Tensor& clean, const at::Tensor& threshold, int64_t k) {
  Routing routing = route_noisy_topk(clean, {}, {}, k);  // without noise: the mask of each row's largest scores
  routing.threshold = threshold;
  return routing;
}

BalancedBatchwiseRouter::BalancedBatchwiseRouter(const BalancedBatchwiseOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))),
      threshold(register_buffer("threshold", torch::zeros({shape.experts}))),
      steps(register_buffer("steps", torch::zeros({}, torch::kLong))),
      options_(options) {
  check_choices("k", options_.k, options_.eval_k, shape.experts, "experts");
}

// Differs from the paper: no load loss, which is undefined without noise.
std::vector<LossWeight> BalancedBatchwiseRouter::default_losses() const { return {{"importance", 0.01}}; }

Routing BalancedBatchwiseRouter::choose(const RouterInput& input) {
  const at::Tensor clean = router_logits(input.tokens, weight);
  if (!input.mode.choices && options_.eval_k > 0) return route_best_experts(clean, threshold, options_.eval_k);
  if (!input.mode.choices) return route_above_threshold(clean, threshold, input.context.valid);
  return route_balanced_batchwise(clean, threshold, options_.k, input.context.valid);
}

void BalancedBatchwiseRouter::post_step_update(const std::vector<Routing>& routings) {
  if (routings.empty()) return;
  const torch::NoGradGuard no_grad;
  const double rate = options_.rate_at(steps.item<int64_t>(), threshold.numel());
  threshold.copy_(moved_threshold(threshold, routings, rate));
  steps += 1;
}

void BalancedBatchwiseRouter::initialize(const InitRandom& random) {
  constexpr double kStd = 0.01;
  init_normal(weight, kStd, random.stream("weight"));
  const torch::NoGradGuard no_grad;
  threshold.fill_(1.0 / static_cast<double>(threshold.numel()));
  steps.zero_();
}

std::unique_ptr<engine::Router> BalancedBatchwiseRouter::compile() const {
  engine::RouterLogits logits(linear_map(weight));
  if (options_.eval_k == 0) return std::make_unique<engine::ThresholdRouter>(std::move(logits), to_floats(threshold));
  return std::make_unique<engine::TopKRouter>(
      std::move(logits), engine::TopKRule{.k = options_.eval_k, .gates = engine::Gates::of_chosen});
}

RouterCost BalancedBatchwiseRouter::cost(const TokenLayout& layout) const {
  const int64_t experts = weight.size(0);
  return expert_choice_cost(router_cost(weight.size(1), experts), static_cast<double>(options_.k * layout.per_image),
                            experts, layout);
}

}  // namespace sparsight
