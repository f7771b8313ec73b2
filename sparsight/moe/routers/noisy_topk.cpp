#include "sparsight/moe/routers/noisy_topk.h"

#include "sparsight/core/log.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/softmax_rows.h"

namespace sparsight {

void NoisyTopKOptions::declare(OptionSet& set) {
  ChoiceOptions::declare(set);
  TieOptions::declare(set);
  set.real("noise_floor", &noise_floor, {0, 1000}, "minimum standard deviation of the noise (0 in the paper)").live =
      true;
  set.flag("noise", &noise, "add noise to the logits in training");
  EvalNoiseOptions::declare(set);
}

// Above `threshold` at::softplus returns its argument; the default of 20 would lose precision in fp64.
at::Tensor noise_scale(const at::Tensor& raw, double floor) { return at::softplus(raw, 1, /*threshold=*/80) + floor; }

Routing route_noisy_topk(const at::Tensor& clean, const at::Tensor& scale, const at::Tensor& epsilon, int64_t k,
                         const at::Tensor& tie_draw) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = clean;
  routing.noisy_logits = epsilon.defined() ? clean + epsilon * scale : clean;
  if (epsilon.defined()) routing.noise_scale = scale;
  routing.scores = softmax_rows(routing.noisy_logits);
  const at::Tensor chosen = top_experts_by_draw(routing.noisy_logits, k, tie_draw);
  choose_per_token(routing, chosen, softmax_rows(routing.noisy_logits.gather(1, chosen)));
  finish_routing(routing);
  return routing;
}

NoisyTopKRouter::NoisyTopKRouter(const NoisyTopKOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))),
      noise_weight(register_parameter("noise_weight", parameter_zeros({shape.experts, shape.width}))),
      options_(options) {
  options_.check(shape.experts);
  if (options_.k == 1)
    log_warning(
        "noisy_topk with k = 1 has gates of exactly 1, so only the balance losses train the router; use "
        "router.name = \"softmax_topk\" to train it with the task loss too");
}

std::vector<LossWeight> NoisyTopKRouter::default_losses() const { return {{"importance", 0.1}, {"load", 0.1}}; }

Routing NoisyTopKRouter::choose(const RouterInput& input) {
  const int64_t k = options_.of(input.mode.choices);
  const at::Tensor clean = router_logits(input.tokens, weight);
  const at::Tensor ties = options_.draw(input, clean);
  if (!options_.noise || !options_.samples(input.mode.noise)) return route_noisy_topk(clean, {}, {}, k, ties);
  const at::Tensor scale = noise_scale(router_logits(input.tokens, noise_weight), options_.noise_floor);
  return route_noisy_topk(clean, scale, router_normal(input, clean, "noise"), k, ties);
}

void NoisyTopKRouter::initialize(const InitRandom&) {
  const torch::NoGradGuard no_grad;
  weight.zero_();
  noise_weight.zero_();
}

Cost with_noise_map(const Cost& map, int64_t logits, bool noise) {
  Cost both = copies(map, 2);
  both.elementwise = map.elementwise;
  if (!noise) {
    both.multiply_adds = map.multiply_adds;
    both.weight_bytes = map.weight_bytes;
    both.active_parameters = map.active_parameters;
    return both;
  }
  constexpr int64_t kSoftplus = 3, kFloor = 1;
  return both + elementwise_cost((kSoftplus + kFloor + kNoiseOperations) * logits);
}

std::unique_ptr<engine::Router> NoisyTopKRouter::compile() const {
  if (options_.samples(false) && options_.noise) fail_compile("eval_noise = true draws random numbers");
  if (options_.ties == "random") fail_compile("ties = \"random\" draws random numbers");
  return std::make_unique<engine::TopKRouter>(
      engine::RouterLogits(linear_map(weight)),
      engine::TopKRule{.k = options_.of(false), .gates = engine::Gates::of_chosen});
}

RouterCost NoisyTopKRouter::cost(const TokenLayout& layout) const {
  const Cost map = router_cost(weight.size(1), weight.size(0));
  return token_choice_cost(with_noise_map(map, weight.size(0), options_.noise), options_.k, layout);
}

}  // namespace sparsight
