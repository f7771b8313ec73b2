#include "sparsight/moe/losses/importance.h"

#include <ATen/ops/softmax.h>

#include "sparsight/moe/losses/cv_squared.h"

namespace sparsight {

at::Tensor dense_importance(const Routing& routing) { return at::softmax(routing.clean_logits, 1).sum(0); }

at::Tensor importance_loss(const Routing& routing) { return cv_squared(dense_importance(routing)); }

}  // namespace sparsight
