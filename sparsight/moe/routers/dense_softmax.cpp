#include "sparsight/moe/routers/dense_softmax.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/moe/routers/softmax_topk.h"

namespace sparsight {

void DenseSoftmaxOptions::declare(OptionSet& set) {
  set.integer("k", &k, {0, 65536}, "experts per token: always all, which 0 stands for");
}

Routing route_dense_softmax(const at::Tensor& clean) { return route_softmax_topk(clean, {}, 0, clean.size(1), false); }

DenseSoftmaxRouter::DenseSoftmaxRouter(const DenseSoftmaxOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))) {
  if (options.k != 0 && options.k != shape.experts)
    fail_usage("[router] k = ", options.k, ", but dense_softmax always chooses all ", shape.experts,
               " experts; remove router.k");
}

Routing DenseSoftmaxRouter::choose(const RouterInput& input) {
  return route_dense_softmax(router_logits(input.tokens, weight));
}

void DenseSoftmaxRouter::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

}  // namespace sparsight
