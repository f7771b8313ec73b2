#include "sparsight/moe/losses/vmoe_importance.h"

#include <ATen/ops/softmax.h>

#include "sparsight/moe/losses/cv_squared.h"
#include "sparsight/moe/losses/token_sums.h"

namespace sparsight {

at::Tensor dense_importance(const Routing& routing) {
  return group_sums(routing, at::softmax(routing.clean_logits, 1));
}

at::Tensor vmoe_importance_loss(const Routing& routing, bool unbiased) {
  if (!routing.clean_logits.defined()) return {};
  return group_mean(routing, cv_squared(dense_importance(routing), unbiased));
}

}  // namespace sparsight
