#include "sparsight/moe/losses/router_z.h"

#include <ATen/ops/logsumexp.h>

#include "sparsight/moe/losses/token_sums.h"

namespace sparsight {

at::Tensor router_z_loss(const Routing& routing) {
  if (!routing.clean_logits.defined()) return {};
  return token_mean(routing, at::logsumexp(routing.clean_logits, {1}).square());
}

}  // namespace sparsight
