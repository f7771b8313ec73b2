#include "nearest_centre.h"

#include <algorithm>

#include <sparsight/core/error.h>
#include <sparsight/moe/finish_routing.h>
#include <sparsight/ops/top_experts.h>
#include <torch/types.h>

using namespace sparsight;

void NearestCentreOptions::declare(OptionSet& set) {
  set.integer("k", &k, {1, 4096}, "experts per token");
  set.real("temperature", &temperature, {1e-6, 1e6}, "divisor of the squared distances");
  set.real("commitment", &commitment, {0, 1e6},
           "weight of the squared distance from the chosen centres; 0: no such loss");
}

NearestCentreRouter::NearestCentreRouter(const NearestCentreOptions& options, RouterShape shape)
    : centres_(register_parameter("centres", torch::zeros({shape.experts, shape.width}))), options_(options) {
  if (options_.k > shape.experts)
    fail_usage("[router] k = ", options_.k, " but [moe] experts is ", shape.experts, "; lower k or add experts");
}

void NearestCentreRouter::initialize(const InitRandom& random) { init_normal(centres_, 1, random.stream("centres")); }

Routing NearestCentreRouter::choose(const RouterInput& input) {
  const at::Tensor x = input.tokens.to(centres_.scalar_type());  // [N,D]; routers compute in fp32
  const at::Tensor squared =
      x.square().sum(1, /*keepdim=*/true) - 2 * x.matmul(centres_.t()) + centres_.square().sum(1);
  Routing routing;
  routing.tokens = x.size(0);
  routing.experts = centres_.size(0);
  routing.clean_logits = routing.noisy_logits = -squared / options_.temperature;  // [N,E]
  routing.scores = at::softmax(routing.clean_logits, 1);
  const at::Tensor chosen = top_experts(routing.clean_logits, options_.k);                    // [N,K]
  choose_per_token(routing, chosen, at::softmax(routing.clean_logits.gather(1, chosen), 1));  // gates sum to 1
  finish_routing(routing);
  return routing;
}

at::Tensor NearestCentreRouter::mean_squared_distance(const Routing& routing) const {
  const at::Tensor logit = routing.clean_logits.index({routing.token, routing.expert});  // -distance² / temperature
  return logit.sum() * (-options_.temperature / std::max<int64_t>(1, logit.numel()));
}

std::vector<RouterLoss> NearestCentreRouter::own_losses() const {
  if (options_.commitment == 0) return {};
  return {
      {"commitment", options_.commitment, [this](const Routing& routing) { return mean_squared_distance(routing); }}};
}

std::vector<RoutingMetric> NearestCentreRouter::metrics(const Routing& routing) const {
  return {{"squared_distance", mean_squared_distance(routing).item<double>()}};
}
