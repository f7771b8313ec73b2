#include "sparsight/moe/routers/softmax_topk.h"

#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/softmax_rows.h"

namespace sparsight {

void SoftmaxTopKOptions::declare(OptionSet& set) {
  ChoiceOptions::declare(set);
  TieOptions::declare(set);
  set.real("noise", &noise, {0, 1000}, "standard deviation of the logit noise in training, as a multiple of 1/experts")
      .live = true;
  EvalNoiseOptions::declare(set);
  set.flag("renormalize", &renormalize, "divide a token's gates by their sum (V-MoE does not)");
}

Routing route_softmax_topk(const at::Tensor& clean, const at::Tensor& epsilon, double noise_std, int64_t k,
                           bool renormalize, const at::Tensor& tie_draw) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = clean;
  routing.noisy_logits = epsilon.defined() ? clean + noise_std * epsilon : clean;
  if (epsilon.defined()) routing.noise_scale = torch::full({}, noise_std, clean.options());
  routing.scores = softmax_rows(routing.noisy_logits);
  // The softmax is monotone: the k largest logits are the k largest scores, and differ where scores underflow to 0.
  const at::Tensor chosen = top_experts_by_draw(routing.noisy_logits, k, tie_draw);
  at::Tensor gate = routing.scores.gather(1, chosen);
  // The softmax of the chosen logits is gate / sum(gate), without dividing by a sum that may be 0.
  if (renormalize) gate = softmax_rows(routing.noisy_logits.gather(1, chosen));
  choose_per_token(routing, chosen, gate);
  finish_routing(routing);
  return routing;
}

SoftmaxTopKRouter::SoftmaxTopKRouter(const SoftmaxTopKOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  options_.check(shape.experts);
}

std::vector<LossWeight> SoftmaxTopKRouter::default_losses() const {
  // The choice of the authors of Puigcerver et al. 2022: the load of two experts may be NaN.
  if (weight.size(0) == 2) return {{"switch", 0.01, "first"}};
  return {{"vmoe_importance", 0.005}, {"vmoe_load", 0.005}};
}

Routing SoftmaxTopKRouter::choose(const RouterInput& input) {
  const at::Tensor clean = router_logits(input.tokens, weight);
  const double noise_std = options_.samples(input.mode.noise) ? options_.noise / static_cast<double>(clean.size(1)) : 0;
  at::Tensor epsilon;
  if (noise_std > 0) epsilon = router_normal(input, clean, "noise");
  return route_softmax_topk(clean, epsilon, noise_std, options_.of(input.mode.choices), options_.renormalize,
                            options_.draw(input, clean));
}

void SoftmaxTopKRouter::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

std::unique_ptr<engine::Router> SoftmaxTopKRouter::compile() const {
  if (options_.samples(false) && options_.noise > 0) fail_compile("eval_noise = true draws random numbers");
  if (options_.ties == "random") fail_compile("ties = \"random\" draws random numbers");
  return std::make_unique<engine::TopKRouter>(
      engine::RouterLogits(linear_map(weight)),
      engine::TopKRule{.k = options_.of(false),
                       .gates = options_.renormalize ? engine::Gates::of_chosen : engine::Gates::probability});
}

RouterCost SoftmaxTopKRouter::cost(const TokenLayout& layout) const {
  const Cost noise = elementwise_cost(options_.noise > 0 ? kNoiseOperations * weight.size(0) : 0);
  return token_choice_cost(router_cost(weight.size(1), weight.size(0)) + noise, options_.k, layout);
}

}  // namespace sparsight
