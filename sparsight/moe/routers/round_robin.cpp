#include "sparsight/moe/routers/round_robin.h"

#include "sparsight/engine/routers/fixed.h"
#include "sparsight/moe/routers/fixed_choice.h"

namespace sparsight {

RoundRobinRouter::RoundRobinRouter(const RoundRobinOptions& options, RouterShape shape)
    : options_(options), experts_(shape.experts) {
  options_.check(experts_);
}

Routing RoundRobinRouter::choose(const RouterInput& input) {
  const int64_t k = options_.of(input.mode.choices);
  const at::Tensor turn =
      token_numbers(input.layout, input.context.image).unsqueeze(1) * k + torch::arange(k, torch::kLong);
  return route_fixed(turn.remainder(experts_), experts_, input.tokens);
}

std::unique_ptr<engine::Router> RoundRobinRouter::compile() const {
  return std::make_unique<engine::RoundRobinRouter>(experts_, options_.of(false));
}

RouterCost RoundRobinRouter::cost(const TokenLayout& layout) const { return token_choice_cost({}, options_.k, layout); }

}  // namespace sparsight
