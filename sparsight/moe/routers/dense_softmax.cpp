#include "sparsight/moe/routers/dense_softmax.h"

#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/moe/routers/softmax_topk.h"

namespace sparsight {

Routing route_dense_softmax(const at::Tensor& clean) { return route_softmax_topk(clean, {}, 0, clean.size(1), false); }

DenseSoftmaxRouter::DenseSoftmaxRouter(const DenseSoftmaxOptions&, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))) {}

Routing DenseSoftmaxRouter::choose(const RouterInput& input) {
  return route_dense_softmax(router_logits(input.tokens, weight));
}

void DenseSoftmaxRouter::initialize(const InitRandom& random) { init_normal(weight, kVitStd, random.stream("weight")); }

}  // namespace sparsight
