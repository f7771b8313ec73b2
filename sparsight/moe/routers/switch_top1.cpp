#include "sparsight/moe/routers/switch_top1.h"

#include <cmath>

#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/moe/routers/softmax_topk.h"

namespace sparsight {

void SwitchTop1Options::declare(OptionSet& set) {
  FixedChoiceOptions::declare(set);
  set.real("jitter", &jitter, {0, 1},
           "multiplicative jitter: in training the router sees tokens times U(1 - jitter, 1 + jitter), elementwise")
      .live = true;
  EvalNoiseOptions::declare(set);
}

at::Tensor jitter_tokens(const at::Tensor& tokens, const at::Tensor& uniform, double jitter) {
  return tokens * (1 - jitter + 2 * jitter * uniform);
}

Routing route_switch_top1(const at::Tensor& clean, int64_t k) { return route_softmax_topk(clean, {}, 0, k, false); }

SwitchTop1Router::SwitchTop1Router(const SwitchTop1Options& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  options_.check("switch_top1", shape.experts);
}

std::vector<LossWeight> SwitchTop1Router::default_losses() const { return {{"switch", 0.01}}; }

Routing SwitchTop1Router::choose(const RouterInput& input) {
  at::Tensor tokens = input.tokens.to(weight.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat);
  if (options_.samples(input.mode.noise) && options_.jitter > 0)
    tokens = jitter_tokens(tokens, router_uniform(input, tokens, "jitter"), options_.jitter);
  return route_switch_top1(router_logits(tokens, weight), options_.of(input.mode.choices));
}

void SwitchTop1Router::initialize(const InitRandom& random) {
  init_normal(weight, std::sqrt(0.1 / static_cast<double>(weight.size(1))), random.stream("weight"));
}

std::unique_ptr<engine::Router> SwitchTop1Router::compile() const {
  if (options_.samples(false) && options_.jitter > 0) fail_compile("eval_noise = true draws random numbers");
  return std::make_unique<engine::TopKRouter>(
      engine::RouterLogits(linear_map(weight)),
      engine::TopKRule{.k = options_.of(false), .gates = engine::Gates::probability});
}

RouterCost SwitchTop1Router::cost(const TokenLayout& layout) const {
  const Cost jitter = elementwise_cost(options_.jitter > 0 ? 3 * weight.size(1) : 0);
  return token_choice_cost(router_cost(weight.size(1), weight.size(0)) + jitter, options_.k, layout);
}

}  // namespace sparsight
