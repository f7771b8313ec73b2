#include "sparsight/moe/routers/gshard_top2.h"

#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/softmax_rows.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {
namespace {

// [N,K]: each token's first expert, second expert, ...
at::Tensor best_experts(const at::Tensor& clean, const at::Tensor& gumbel, int64_t k) {
  if (!gumbel.defined() || k == 1) return top_experts(clean, k);
  const at::Tensor first = top_experts(clean, 1);
  const at::Tensor others = clean.detach().scatter(1, first, -std::numeric_limits<double>::infinity());
  return at::cat({first, top_experts(others + gumbel, k - 1)}, 1);
}

}  // namespace

void GshardTop2Options::declare(OptionSet& set) {
  FixedChoiceOptions::declare(set);
  const std::vector<std::string> policies{"all", "none", "threshold", "random"};
  set.choice("second", &second, policies, "which second choices are used in training");
  set.choice("eval_second", &eval_second, policies, "which second choices are used in evaluation");
  set.real("threshold", &threshold, {1e-6, 1},
           "gate above which a second choice is used (random: always used): 0.5 in GShard, 0.2 in Mesh-TF")
      .live = true;
  set.flag("sample_second", &sample_second, "sample the second expert from the router's probabilities in training");
  EvalNoiseOptions::declare(set, "use sample_second in evaluation too");
}

Routing route_gshard_top2(const at::Tensor& clean, const std::string& second, double threshold,
                          const at::Tensor& uniform, const at::Tensor& gumbel, int64_t k) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = softmax_rows(clean);
  const at::Tensor chosen = best_experts(clean, gumbel, k);
  const at::Tensor gate = softmax_rows(clean.gather(1, chosen));
  choose_per_token(routing, chosen, gate);
  finish_routing(routing);
  if (second == "all" || k == 1) return routing;
  at::Tensor used = at::ones_like(chosen, torch::kBool), later = used.narrow(1, 1, k - 1);  // shares the memory
  const at::Tensor later_gate = gate.detach().narrow(1, 1, k - 1);
  if (second == "none") later.fill_(false);
  if (second == "threshold") later.copy_(later_gate > threshold);
  if (second == "random") later.copy_(uniform.reshape(later.sizes()) < later_gate / threshold);
  routing.skips = true;
  select_assignments(routing, at::nonzero(used.view({-1})).squeeze(1));
  return routing;
}

GshardTop2Router::GshardTop2Router(const GshardTop2Options& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  if (shape.experts < 2) fail_usage("[router] gshard_top2 needs [moe] experts of at least 2, got ", shape.experts);
  options_.check("gshard_top2", shape.experts);
}

std::vector<LossWeight> GshardTop2Router::default_losses() const { return {{"switch", 0.01, "first"}}; }

Routing GshardTop2Router::choose(const RouterInput& input) {
  const at::Tensor clean = router_logits(input.tokens, weight);
  const std::string& second = input.mode.choices ? options_.second : options_.eval_second;
  const int64_t k = options_.of(input.mode.choices);
  at::Tensor uniform, gumbel;
  if (second == "random" && k > 1) uniform = router_uniform(input, clean, k - 1, "second");
  if (options_.samples(input.mode.noise) && options_.sample_second) {
    // The samples have 32 bits: clamping them away from 0 and 1 keeps both logarithms finite.
    const at::Tensor uniform = router_uniform(input, clean, "second_expert").clamp(1e-7, 1 - 1e-7);
    gumbel = -at::log(-at::log(uniform));
  }
  return route_gshard_top2(clean, second, options_.threshold, uniform, gumbel, k);
}

void GshardTop2Router::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

std::unique_ptr<engine::Router> GshardTop2Router::compile() const {
  if (options_.samples(false) && options_.sample_second) fail_compile("eval_noise = true draws random numbers");
  if (options_.eval_second == "random") fail_compile("eval_second = \"random\" draws random numbers");
  engine::TopKRule rule{.k = options_.of(false), .gates = engine::Gates::of_chosen};
  rule.drops_later = options_.eval_second != "all";
  if (options_.eval_second == "threshold") rule.later_above = options_.threshold;
  return std::make_unique<engine::TopKRouter>(engine::RouterLogits(linear_map(weight)), rule);
}

RouterCost GshardTop2Router::cost(const TokenLayout& layout) const {
  const int64_t used = options_.second == "none" ? 1 : 2;  // at most: second experts may be skipped
  RouterCost cost = token_choice_cost(router_cost(weight.size(1), weight.size(0)), used, layout);
  cost.per_token = 2;
  return cost;
}

}  // namespace sparsight
