#include "sparsight/moe/routers/cosine.h"

#include <cmath>

#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "sparsight/nn/packed_weights.h"

namespace sparsight {
namespace {

const double kMaxLogScale = std::log(100.0);

at::Tensor normalized(const at::Tensor& x, int64_t axis) {
  return x / at::linalg_vector_norm(x, 2, axis, /*keepdim=*/true).clamp_min(1e-12);
}

// codebook: [P,E]. Returns [P,E]: columns of norm 1 times the scale.
at::Tensor scaled_experts(const at::Tensor& codebook, const at::Tensor& log_scale) {
  const at::Tensor scale = log_scale.clamp_max(kMaxLogScale).exp();
  // One factor per expert: the gradient of a single factor would be a long sum, which torch splits by thread.
  return normalized(codebook, 0) * scale.expand({codebook.size(1)});
}

}  // namespace

void CosineOptions::declare(OptionSet& set) {
  ChoiceOptions::declare(set);
  TieOptions::declare(set);
  set.integer("width", &width, {1, 65536}, "dimension of the space in which cosines are computed");
  set.real("noise", &noise, {0, 1000}, "standard deviation of the logit noise in training, as a multiple of 1/experts")
      .live = true;
  EvalNoiseOptions::declare(set);
  set.real("temperature", &temperature, {0.01, 1000}, "initial temperature: divisor of the cosines");
  set.flag("learn_temperature", &learn_temperature, "train the temperature (never below 0.01)");
  set.choice("renormalize", &renormalize, {"auto", "on", "off"},
             "divide the gates of a token by their sum; auto: where k is above 1");
}

at::Tensor cosine_logits(const at::Tensor& tokens, const at::Tensor& projector, const at::Tensor& bias,
                         const at::Tensor& codebook, const at::Tensor& log_scale) {
  const NoAutocast fp32;
  const at::Tensor direction = normalized(router_logits(tokens, projector, bias), 1);  // [N,P]
  const auto type = direction.scalar_type();
  return router_logits(direction, scaled_experts(codebook.to(type), log_scale.to(type)).t());
}

CosineRouter::CosineRouter(const CosineOptions& options, RouterShape shape)
    : projector(register_parameter("projector", parameter_zeros({options.width, shape.width}))),
      projector_bias(register_parameter("projector_bias", parameter_zeros({options.width}))),
      codebook(register_parameter("codebook", parameter_zeros({options.width, shape.experts}))),
      options_(options) {
  options_.check(shape.experts);
  log_scale = options_.learn_temperature ? register_parameter("log_scale", parameter_zeros({}))
                                         : register_buffer("log_scale", torch::zeros({}));
}

std::vector<LossWeight> CosineRouter::default_losses() const {
  return {{"vmoe_importance", 0.005}, {"vmoe_load", 0.005}};
}

Routing CosineRouter::choose(const RouterInput& input) {
  const at::Tensor clean = cosine_logits(input.tokens, projector, projector_bias, codebook, log_scale);
  const double noise_std = options_.samples(input.mode.noise) ? options_.noise / static_cast<double>(clean.size(1)) : 0;
  at::Tensor epsilon;
  if (noise_std > 0) epsilon = router_normal(input, clean, "noise");
  const int64_t k = options_.of(input.mode.choices);
  const bool renormalize = options_.renormalize == "on" || (options_.renormalize == "auto" && k > 1);
  return route_softmax_topk(clean, epsilon, noise_std, k, renormalize, options_.draw(input, clean));
}

void CosineRouter::initialize(const InitRandom& random) {
  init_normal(projector, kVitStd, random.stream("projector"));
  init_normal(codebook, 0.01, random.stream("codebook"));
  const torch::NoGradGuard no_grad;
  projector_bias.zero_();
  log_scale.fill_(-std::log(options_.temperature));
}

std::unique_ptr<engine::Router> CosineRouter::compile() const {
  if (options_.samples(false) && options_.noise > 0) fail_compile("eval_noise = true draws random numbers");
  if (options_.ties == "random") fail_compile("ties = \"random\" draws random numbers");
  const torch::NoGradGuard no_grad;
  const int64_t k = options_.of(false);
  const bool renormalize = options_.renormalize == "on" || (options_.renormalize == "auto" && k > 1);
  return std::make_unique<engine::TopKRouter>(
      engine::RouterLogits(linear_map(projector, projector_bias),
                           engine::LinearMap(to_floats(scaled_experts(codebook, log_scale)), codebook.size(0),
                                             codebook.size(1), /*transposed=*/false)),
      engine::TopKRule{.k = k, .gates = renormalize ? engine::Gates::of_chosen : engine::Gates::probability});
}

RouterRemoval CosineRouter::expert_removal() const {
  const bool renormalizes = options_.renormalize == "on" || (options_.renormalize == "auto" && options_.of(false) > 1);
  return removable({{"codebook", 1}}, renormalizes ? KeptRouting::gates : KeptRouting::choices);
}

RouterCost CosineRouter::cost(const TokenLayout& layout) const {
  constexpr int64_t kUnitLength = 3;  // square, sum, divide
  const int64_t width = projector.size(0), experts = codebook.size(1);
  Cost of_token =
      linear_cost(projector.size(1), width, true) + elementwise_cost(kUnitLength * width) + router_cost(width, experts);
  if (options_.learn_temperature) of_token = of_token + parameters_cost(1);
  if (options_.noise > 0) of_token = of_token + elementwise_cost(kNoiseOperations * experts);
  return token_choice_cost(of_token, options_.k, layout);
}

}  // namespace sparsight
