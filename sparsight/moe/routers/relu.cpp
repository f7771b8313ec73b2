#include "sparsight/moe/routers/relu.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/varying.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/losses/token_sums.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {
namespace {

constexpr double kMaxCoefficient = 1e6;

// Maximum number of assignments: tokens without padding, times experts.
double max_assignments(const Routing& routing) {
  const int64_t tokens = routing.valid.defined() ? routing.valid.sum().item<int64_t>() : routing.scores.size(0);
  return static_cast<double>(tokens * routing.experts);
}

double assignments(const Routing& routing) { return routing.chosen_count.sum().item<double>(); }

}  // namespace

void ReluOptions::declare(OptionSet& set) {
  set.real("mean_k", &mean_k, {1e-3, 65536},
           "target number of experts per token, on average, that the L1 loss adapts to");
  set.real("coefficient", &coefficient, {0, 1e6}, "initial coefficient of the L1 loss; 0: no L1 loss");
  set.real("growth", &growth, {1, 100}, "factor by which the coefficient grows or shrinks after each step");
  set.flag("balance", &balance, "weight each expert's L1 loss by its fraction of the tokens");
}

Routing route_relu(const at::Tensor& clean) {
  Routing routing;
  routing.tokens = clean.size(0);
  routing.experts = clean.size(1);
  routing.clean_logits = routing.noisy_logits = clean;
  routing.scores = at::relu(clean);
  // Written so that NaN counts as chosen and reaches the output. Only as many ranks are sorted as any token uses.
  const at::Tensor used = (clean.detach() <= 0).logical_not();
  const int64_t maximum = routing.tokens == 0 ? 1 : std::max<int64_t>(1, used.sum(1).max().item<int64_t>());
  const at::Tensor chosen = top_experts(clean, maximum);
  choose_per_token(routing, chosen, routing.scores.gather(1, chosen));
  routing.per_token = routing.experts;
  routing.varying = true;
  select_assignments(routing, at::nonzero(used.gather(1, chosen).view({-1})).squeeze(1));
  return routing;
}

at::Tensor relu_l1(const Routing& routing, double k, bool balance) {
  const at::Tensor gates = at::relu(routing.clean_logits);  // [N,E]
  if (!balance) return token_mean(routing, gates.sum(1));
  const double tokens = std::max(1.0, max_assignments(routing) / static_cast<double>(routing.experts));
  const at::Tensor share =
      routing.chosen_count.to(gates.scalar_type()) * (static_cast<double>(routing.experts) / (k * tokens));
  return token_mean(routing, (gates * share).sum(1));
}

at::Tensor adapted_coefficient(const at::Tensor& l, double sparsity, double wanted, double growth) {
  const double sign = static_cast<double>(wanted > sparsity) - static_cast<double>(wanted < sparsity);
  return (l * std::pow(growth, sign)).clamp_max(kMaxCoefficient);
}

ReluRouter::ReluRouter(const ReluOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))),
      l1_coefficient(register_buffer("l1_coefficient", torch::full({}, options.coefficient))),
      options_(options) {
  if (options_.mean_k > static_cast<double>(shape.experts))
    fail_usage("[router] mean_k = ", options_.mean_k, " is above the ", shape.experts, " experts; lower it");
}

std::vector<RouterLoss> ReluRouter::own_losses() const {
  if (options_.coefficient == 0) return {};
  return {{"relu_l1", 1, [this](const Routing& routing) {
             return l1_coefficient * relu_l1(routing, options_.mean_k, options_.balance);
           }}};
}

std::vector<RoutingMetric> ReluRouter::metrics(const Routing& routing) const {
  return {{"sparsity", 1 - assignments(routing) / std::max(1.0, max_assignments(routing))},
          {"l1_coefficient", l1_coefficient.item<double>()}};
}

std::unique_ptr<engine::Router> ReluRouter::compile() const {
  return std::make_unique<engine::ReluRouter>(engine::RouterLogits(linear_map(weight)));
}

RouterCost ReluRouter::cost(const TokenLayout& layout) const {
  const int64_t experts = weight.size(0);  // each with a ReLU
  return varying_choice_cost(router_cost(weight.size(1), experts) + elementwise_cost(experts), options_.mean_k, layout);
}

Routing ReluRouter::choose(const RouterInput& input) { return route_relu(router_logits(input.tokens, weight)); }

void ReluRouter::post_step_update(const std::vector<Routing>& routings) {
  double all = 0, used = 0;
  for (const Routing& routing : routings) {
    all += max_assignments(routing);
    used += assignments(routing);
  }
  if (all == 0) return;
  const torch::NoGradGuard no_grad;
  const double wanted = 1 - options_.mean_k / static_cast<double>(weight.size(0));
  l1_coefficient.copy_(adapted_coefficient(l1_coefficient, 1 - used / all, wanted, options_.growth));
}

void ReluRouter::initialize(const InitRandom& random) {
  init_normal(weight, kVitStd, random.stream("weight"));
  const torch::NoGradGuard no_grad;
  l1_coefficient.fill_(options_.coefficient);
}

}  // namespace sparsight
