#include "sparsight/moe/routers/random.h"

#include "sparsight/moe/routers/fixed_choice.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {

RandomRouter::RandomRouter(const RandomOptions& options, RouterShape shape)
    : options_(options), experts_(shape.experts) {
  options_.check(experts_);
}

Routing RandomRouter::choose(const RouterInput& input) {
  const at::Tensor uniform = router_uniform(input, input.tokens, experts_, "draw");
  return route_fixed(top_experts(uniform, options_.of(input.mode.choices)), experts_, input.tokens);
}

std::unique_ptr<engine::Router> RandomRouter::compile() const { fail_compile("it draws random numbers in evaluation"); }

RouterCost RandomRouter::cost(const TokenLayout& layout) const { return token_choice_cost({}, options_.k, layout); }

}  // namespace sparsight
