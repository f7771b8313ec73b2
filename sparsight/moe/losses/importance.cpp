#include "sparsight/moe/losses/importance.h"

#include <ATen/ops/zeros.h>

#include "sparsight/moe/losses/cv_squared.h"

namespace sparsight {

at::Tensor importance(const Routing& routing) {
  return at::zeros({routing.experts}, routing.gate.options()).index_add(0, routing.expert, routing.gate);
}

at::Tensor importance_loss(const Routing& routing, bool unbiased) { return cv_squared(importance(routing), unbiased); }

}  // namespace sparsight
