#include "sparsight/moe/routers/sinkhorn.h"

#include <cmath>

#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/softmax_rows.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {

void SinkhornOptions::declare(OptionSet& set) {
  ChoiceOptions::declare(set);
  set.real("temperature", &temperature, {1e-6, 1e6}, "temperature: divisor of the logits before balancing").live = true;
  set.integer("iterations", &iterations, {0, 100000}, "Sinkhorn iterations; 0: no balancing");
  set.choice("gate", &gate, {"softmax", "sigmoid"}, "the gate as a function of the unbalanced logits");
}

at::Tensor sinkhorn_offsets(const at::Tensor& logits, int64_t iterations) {
  const auto tokens = static_cast<double>(logits.size(0)), experts = static_cast<double>(logits.size(1));
  // NaN or infinity in one token must not affect the others.
  const at::Tensor plain = at::nan_to_num(logits.detach(), 0, 1e4, -1e4);
  at::Tensor offsets = at::zeros({1, logits.size(1)}, plain.options());
  for (int64_t i = 0; i < iterations && tokens > 0; ++i) {
    const at::Tensor rows = at::logsumexp(plain + offsets, {1}, /*keepdim=*/true);
    offsets = std::log(tokens / experts) - at::logsumexp(plain - rows, {0}, /*keepdim=*/true);
  }
  return offsets.squeeze(0);
}

Routing route_sinkhorn(const at::Tensor& clean, const at::Tensor& offsets, int64_t k, const std::string& gate) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = gate == "sigmoid" ? at::sigmoid(clean) : softmax_rows(clean);
  const at::Tensor chosen = top_experts(offsets.defined() ? clean.detach() + offsets : clean, k);
  choose_per_token(routing, chosen, routing.scores.gather(1, chosen));
  finish_routing(routing);
  return routing;
}

SinkhornRouter::SinkhornRouter(const SinkhornOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  options_.check(shape.experts);
}

Routing SinkhornRouter::choose(const RouterInput& input) {
  const at::Tensor clean = router_logits(input.tokens, weight);
  at::Tensor offsets;
  if (input.mode.choices) {
    const at::Tensor& valid = input.context.valid;
    const at::Tensor counted = valid.defined() ? clean.index_select(0, at::nonzero(valid).squeeze(1)) : clean;
    // The k largest of clean / T + offsets are those of clean + T * offsets.
    offsets = options_.temperature * sinkhorn_offsets(counted / options_.temperature, options_.iterations);
  }
  return route_sinkhorn(clean, offsets, options_.of(input.mode.choices), options_.gate);
}

void SinkhornRouter::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

std::unique_ptr<engine::Router> SinkhornRouter::compile() const {
  return std::make_unique<engine::TopKRouter>(
      engine::RouterLogits(linear_map(weight)),
      engine::TopKRule{.k = options_.of(false),
                       .gates = options_.gate == "sigmoid" ? engine::Gates::sigmoid : engine::Gates::probability});
}

RouterCost SinkhornRouter::cost(const TokenLayout& layout) const {
  const int64_t experts = weight.size(0);  // each iteration normalises rows and columns
  const Cost balancing = elementwise_cost(2 * kSoftmaxOperations * options_.iterations * experts);
  return token_choice_cost(router_cost(weight.size(1), experts) + balancing, options_.k, layout);
}

}  // namespace sparsight
