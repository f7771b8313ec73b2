#include "sparsight/moe/router.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {

Routing Router::route(const RouterInput& input) {
  const at::Tensor& valid = input.pool.valid;
  for (const at::Tensor* of_tokens : {&valid, &input.pool.priority})
    SPARSIGHT_CHECK(!of_tokens->defined() || (of_tokens->dim() == 1 && of_tokens->size(0) == input.tokens.size(0)));
  Routing routing;
  if (valid.defined()) {
    // What lies in padding may be NaN; its logits must not reach the gradient of the router's weights.
    RouterInput cleared = input;
    cleared.tokens = input.tokens.masked_fill(valid.logical_not().unsqueeze(1), 0);
    routing = choose(cleared);
    drop_padding(routing, valid);
  } else {
    routing = choose(input);
  }
  routing.layer = input.layer;
  routing.layout = input.layout;
  routing.group_tokens = input.group_tokens;
  routing.target = input.pool.target;
  routing.priority = input.pool.priority;
  return routing;
}

void Router::after_step(const std::vector<Routing>&) {}

Routing SoftRouter::choose(const RouterInput&) {
  SPARSIGHT_CHECK(!"a soft router makes no choices");
  return {};
}

namespace {

// The draws that the caller gave for `purpose`, or undefined.
at::Tensor given_draws(const RouterInput& input, const std::string& purpose, const at::Tensor& like,
                       at::IntArrayRef sizes) {
  if (input.pool.asked_for) input.pool.asked_for->insert(purpose);
  const auto given = input.pool.draws.find(purpose);
  if (given == input.pool.draws.end()) return {};
  if (given->second.sizes() != sizes)
    fail("the draws \"", purpose, "\" have the shape ", given->second.sizes(), ", expected ", sizes);
  return given->second.to(like.options());
}

}  // namespace

at::Tensor router_normal(const RouterInput& input, const at::Tensor& like, const std::string& purpose) {
  if (const at::Tensor given = given_draws(input, purpose, like, like.sizes()); given.defined()) return given;
  return normal_like(like, like.sizes(), input.random.stream(input.layer + ".router." + purpose),
                     static_cast<uint64_t>(input.pool.first_token * like.size(1)));
}

at::Tensor router_uniform(const RouterInput& input, const at::Tensor& like, int64_t columns,
                          const std::string& purpose) {
  if (const at::Tensor given = given_draws(input, purpose, like, {like.size(0), columns}); given.defined())
    return given;
  return uniform_like(like, {like.size(0), columns}, input.random.stream(input.layer + ".router." + purpose),
                      static_cast<uint64_t>(input.pool.first_token * columns));
}

}  // namespace sparsight
