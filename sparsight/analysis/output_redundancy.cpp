#include "sparsight/analysis/output_redundancy.h"

#include <torch/types.h>

#include "sparsight/analysis/routing_change.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {
namespace {

const Routing& routing_named(const Routings& routings, const std::string& layer) {
  const auto found = routings.find(layer);
  // A model-wide router has one routing for all layers.
  const auto shared = routings.find("router");
  if (found == routings.end() && shared == routings.end())
    fail("there is no attacked routing of the layer ", printable(layer));
  return found != routings.end() ? found->second : shared->second;
}

}  // namespace

Routing with_random_experts(const Routing& routing, uint64_t seed) {
  if (routing.soft || routing.per_token < 1)
    fail("the routing of ", printable(routing.layer), " does not choose experts for each token, so none are replaced");
  const at::Tensor keys = uniform_like(torch::empty({0}), {routing.tokens, routing.experts},
                                       RandomStream(seed, routing.layer + ".random_experts"));
  const at::Tensor experts = top_experts(keys, routing.per_token);  // [N,K] distinct, in random order
  Routing random = routing;
  random.expert = experts.index({routing.token.cpu(), routing.rank.cpu()}).to(routing.expert.device());
  finish_routing(random);
  return random;
}

OutputRedundancy output_redundancy(MoeLayer& layer, const MoeInput& input, const Routing& clean,
                                   const Routing& attacked, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  const at::Tensor changes = token_changes(kept_sets(clean), kept_sets(attacked)).reshape({-1});
  const at::Tensor y = layer.apply(input, clean), norm = y.norm(2, 1).cpu();
  const at::Tensor counted = torch::nonzero((changes > 0) & (norm > 0)).squeeze(1);  // NaN, padding, is not above 0
  OutputRedundancy result;
  result.tokens = counted.size(0);
  if (result.tokens == 0) return result;
  const auto distance = [&](const Routing& routing) {
    const at::Tensor relative = (layer.apply(input, routing) - y).norm(2, 1).cpu() / norm;
    return relative.index_select(0, counted).to(torch::kDouble).mean().item<double>();
  };
  result.attacked = distance(attacked);
  result.random = distance(with_random_experts(attacked, seed));
  return result;
}

std::map<std::string, OutputRedundancy> output_redundancy(ImageModel& model, const ModelInput& clean,
                                                          const Routings& attacked, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, OutputRedundancy> results;
  ModelInput input = clean;
  input.pre_experts_hook = [&](MoeLayer& layer, MoeInput& tokens, Routing& routing) {
    if (!routing.soft)
      results[layer.path()] = output_redundancy(layer, tokens, routing, routing_named(attacked, layer.path()), seed);
  };
  model.forward(input);
  return results;
}

}  // namespace sparsight
