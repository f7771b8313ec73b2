#include "sparsight/moe/routers/round_robin.h"

#include "sparsight/moe/routers/fixed_choice.h"

namespace sparsight {

RoundRobinRouter::RoundRobinRouter(const RoundRobinOptions& options, RouterShape shape)
    : options_(options), experts_(shape.experts) {
  options_.check(experts_);
}

Routing RoundRobinRouter::choose(const RouterInput& input) {
  const int64_t tokens = input.tokens.size(0), k = options_.of(is_training());
  const at::Tensor place = torch::arange(tokens * k, torch::kLong) + input.pool.first_token * k;
  return route_fixed(place.remainder(experts_).view({tokens, k}), experts_, input.tokens);
}

}  // namespace sparsight
