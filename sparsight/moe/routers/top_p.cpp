#include "sparsight/moe/routers/top_p.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/varying.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/softmax_rows.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {

void TopPOptions::declare(OptionSet& set) {
  set.real("p", &p, {1e-6, 1},
           "cumulative probability: experts are taken, the most probable first, until they reach it")
      .live = true;
  set.integer("max_k", &max_k, {0, 65536}, "maximum number of experts per token; 0: all");
}

Routing route_top_p(const at::Tensor& clean, double p, int64_t maximum) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = softmax_rows(clean);
  const at::Tensor chosen = top_experts(clean, maximum), gate = routing.scores.gather(1, chosen);
  choose_per_token(routing, chosen, gate);
  routing.varying = true;
  // An expert is used unless those before it already sum to p. Written so that NaN uses all.
  const at::Tensor before = gate.detach().cumsum(1) - gate.detach();
  at::Tensor used = (before >= p).logical_not();
  used.narrow(1, 0, 1).fill_(true);
  select_assignments(routing, at::nonzero(used.view({-1})).squeeze(1));
  return routing;
}

TopPRouter::TopPRouter(const TopPOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  if (options_.max_k > shape.experts)
    fail_usage("[router] max_k = ", options_.max_k, " is above the ", shape.experts,
               " experts; lower it, or set it to 0 for all");
}

std::unique_ptr<engine::Router> TopPRouter::compile() const {
  return std::make_unique<engine::TopPRouter>(engine::RouterLogits(linear_map(weight)), options_.p,
                                              options_.max_k > 0 ? options_.max_k : weight.size(0));
}

// At most: a token with a clear first choice takes fewer.
RouterCost TopPRouter::cost(const TokenLayout& layout) const {
  const int64_t experts = weight.size(0), maximum = options_.max_k > 0 ? options_.max_k : experts;
  return varying_choice_cost(router_cost(weight.size(1), experts), static_cast<double>(maximum), layout);
}

Routing TopPRouter::choose(const RouterInput& input) {
  return route_top_p(router_logits(input.tokens, weight), options_.p,
                     options_.max_k > 0 ? options_.max_k : weight.size(0));
}

void TopPRouter::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

}  // namespace sparsight
