#include "sparsight/moe/routers/balanced_batchwise.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/expert_picks.h"
#include "sparsight/moe/routers/router_logits.h"

namespace sparsight {
namespace {

Routing scored(const at::Tensor& clean, const at::Tensor& threshold) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = at::softmax(clean, 1);
  routing.threshold = threshold;
  return routing;
}

// Each expert takes the first count[e] of its ranking.
void take(Routing& routing, const at::Tensor& ranked, const at::Tensor& count) {
  choose_per_expert(routing, ranked, count.unsqueeze(1));
  routing.gate = softmax_by_group(at_assignments(routing, routing.clean_logits), routing.token, routing.tokens);
  finish_routing(routing);
}

// [E] int64: scores above the threshold.
at::Tensor count_passing(const at::Tensor& scores, const at::Tensor& threshold, const at::Tensor& valid) {
  at::Tensor passes = scores.detach() > threshold.detach();
  if (valid.defined()) passes = passes.logical_and(valid.unsqueeze(1));
  return passes.sum(0);
}

}  // namespace

void BalancedBatchwiseOptions::declare(OptionSet& set) {
  set.integer("k", &k, {1, 65536}, "experts per token on average; k * tokens must be a multiple of the experts");
  set.real("rate", &rate, {0, 1000}, "how far a threshold moves after each step, as a multiple of 1/experts");
  set.integer("rate_decay_steps", &rate_decay_steps, {0, std::numeric_limits<int64_t>::max()},
              "the rate is divided by 1 + steps / this; 0: constant");
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
  // What exceeds the threshold stands first in the ranking.
  take(routing, ranked_tokens(routing.scores, 1, valid), count_passing(routing.scores, threshold, valid));
  return routing;
}

at::Tensor moved_threshold(const at::Tensor& threshold, const at::Tensor& passed, const at::Tensor& rows, double rate) {
  const at::Tensor wanted = rows.to(torch::kDouble);
  const at::Tensor excess = (passed.to(torch::kDouble) - wanted) / wanted.clamp_min(1);
  return threshold + (rate * excess.masked_fill(wanted == 0, 0)).to(threshold.scalar_type());
}

BalancedBatchwiseRouter::BalancedBatchwiseRouter(const BalancedBatchwiseOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))),
      threshold(register_buffer("threshold", torch::zeros({shape.experts}))),
      steps(register_buffer("steps", torch::zeros({}, torch::kLong))),
      options_(options) {
  if (options_.k > shape.experts)
    fail_usage("[router] k = ", options_.k, " is above [moe] experts = ", shape.experts, "; lower k or add experts");
}

// The paper gives the load loss a weight too; without noise and with equal counts it has no value.
std::vector<LossWeight> BalancedBatchwiseRouter::paper_losses() const { return {{"importance", 0.01}}; }

Routing BalancedBatchwiseRouter::choose(const RouterInput& input) {
  const at::Tensor clean = router_logits(input.tokens, weight);
  if (!is_training()) return route_above_threshold(clean, threshold, input.pool.valid);
  return route_balanced_batchwise(clean, threshold, options_.k, input.pool.valid);
}

void BalancedBatchwiseRouter::after_step(const std::vector<Routing>& routings) {
  if (routings.empty()) return;
  const torch::NoGradGuard no_grad;
  at::Tensor passed = at::zeros_like(routings[0].chosen_count), rows = at::zeros_like(passed);
  for (const Routing& routing : routings) {
    passed += count_passing(routing.scores, threshold, routing.valid);
    rows += routing.chosen_count;
  }
  double rate = options_.rate / static_cast<double>(threshold.numel());
  if (options_.rate_decay_steps > 0)
    rate /= 1 + static_cast<double>(steps.item<int64_t>()) / static_cast<double>(options_.rate_decay_steps);
  threshold.copy_(moved_threshold(threshold, passed, rows, rate));
  steps += 1;
}

void BalancedBatchwiseRouter::initialize(const InitRandom& random) {
  constexpr double kStd = 0.01;
  init_normal(weight, kStd, random.stream("weight"));
  const torch::NoGradGuard no_grad;
  threshold.fill_(1.0 / static_cast<double>(threshold.numel()));
  steps.zero_();
}

}  // namespace sparsight
