#include "sparsight/moe/routers/base.h"

#include <cmath>

#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/balanced_assignment.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {
namespace {

// chosen: [N,K].
Routing with_choice(const at::Tensor& clean, const at::Tensor& chosen) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = at::sigmoid(clean);
  choose_per_token(routing, chosen, routing.scores.gather(1, chosen));
  finish_routing(routing);
  return routing;
}

}  // namespace

Routing route_base(const at::Tensor& clean, const at::Tensor& valid) {
  if (!valid.defined()) return with_choice(clean, balanced_assignment(clean).unsqueeze(1));
  const at::Tensor rows = at::nonzero(valid).squeeze(1);
  const at::Tensor chosen =
      at::zeros({clean.size(0)}, rows.options()).index_copy(0, rows, balanced_assignment(clean.index_select(0, rows)));
  return with_choice(clean, chosen.unsqueeze(1));
}

Routing route_base_greedy(const at::Tensor& clean, int64_t k) { return with_choice(clean, top_experts(clean, k)); }

BaseRouter::BaseRouter(const BaseOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  options_.check("base", shape.experts);
}

Routing BaseRouter::choose(const RouterInput& input) {
  const at::Tensor clean = router_logits(input.tokens, weight);
  return input.mode.choices ? route_base(clean, input.context.valid) : route_base_greedy(clean, options_.of(false));
}

void BaseRouter::initialize(const InitRandom& random) {
  init_normal(weight, 0.1 / std::sqrt(static_cast<double>(weight.size(1))), random.stream("weight"));
}

std::unique_ptr<engine::Router> BaseRouter::compile() const {
  return std::make_unique<engine::TopKRouter>(
      engine::RouterLogits(linear_map(weight)),
      engine::TopKRule{.k = options_.of(false), .gates = engine::Gates::sigmoid});
}

RouterCost BaseRouter::cost(const TokenLayout& layout) const {
  return token_choice_cost(router_cost(weight.size(1), weight.size(0)), options_.k, layout);
}

}  // namespace sparsight
