#include "sparsight/moe/routers/dense_softmax.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/routers/choices.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/moe/routers/softmax_topk.h"

namespace sparsight {

void DenseSoftmaxOptions::declare(OptionSet& set) {
  set.integer("k", &k, {0, 65536}, "experts per token in training: always 0, which means all");
  declare_eval_choices(set, "k", &eval_k, "experts per token");
}

Routing route_dense_softmax(const at::Tensor& clean, int64_t k) {
  return route_softmax_topk(clean, {}, 0, k == 0 ? clean.size(1) : k, false);
}

DenseSoftmaxRouter::DenseSoftmaxRouter(const DenseSoftmaxOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  if (options.k != 0 && options.k != shape.experts)
    fail_usage("[router] k = ", options.k, ", but dense_softmax always chooses all ", shape.experts,
               " experts; remove router.k");
  check_choices("k", options.k, options.eval_k, shape.experts, "experts");
}

Routing DenseSoftmaxRouter::choose(const RouterInput& input) {
  return route_dense_softmax(router_logits(input.tokens, weight), input.mode.choices ? 0 : options_.eval_k);
}

void DenseSoftmaxRouter::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

std::unique_ptr<engine::Router> DenseSoftmaxRouter::compile() const {
  return std::make_unique<engine::TopKRouter>(
      engine::RouterLogits(linear_map(weight)),
      engine::TopKRule{.k = options_.eval_k == 0 ? weight.size(0) : options_.eval_k,
                       .gates = engine::Gates::probability});
}

RouterCost DenseSoftmaxRouter::cost(const TokenLayout& layout) const {
  return token_choice_cost(router_cost(weight.size(1), weight.size(0)), weight.size(0), layout);
}

}  // namespace sparsight
