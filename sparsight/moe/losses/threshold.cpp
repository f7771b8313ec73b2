#include "sparsight/moe/losses/threshold.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/moe/losses/pool_sums.h"

namespace sparsight {

at::Tensor threshold_loss(const Routing& routing) {
  if (!routing.threshold.defined()) return {};
  const at::Tensor scores = routing.scores.detach();
  const at::Tensor chosen = at::zeros_like(scores)
                                .view({-1})
                                .index_fill_(0, routing.token * routing.experts + routing.expert, 1)
                                .view_as(scores);
  const at::Tensor passes = (scores > routing.threshold.detach()).to(scores.scalar_type());
  return without_padding(routing, (passes - chosen) * (scores - routing.threshold)).sum();
}

}  // namespace sparsight
