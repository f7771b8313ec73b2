#include "sparsight/moe/losses/threshold.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/moe/losses/token_sums.h"

namespace sparsight {

at::Tensor threshold_loss(const Routing& routing, bool score_gradient) {
  if (!routing.threshold.defined()) return {};
  const at::Tensor plain = routing.scores.detach(), &scores = score_gradient ? routing.scores : plain;
  const at::Tensor chosen = at::zeros_like(plain)
                                .view({-1})
                                .index_fill_(0, routing.token * routing.experts + routing.expert, 1)
                                .view_as(plain);
  const at::Tensor passes = (plain > routing.threshold.detach()).to(plain.scalar_type());
  const at::Tensor loss = ordered_sum(without_padding(routing, (passes - chosen) * (scores - routing.threshold)));
  const bool of_both_levels = routing.groups && routing.groups->threshold.defined();
  return of_both_levels ? loss + threshold_loss(*routing.groups, score_gradient) : loss;
}

}  // namespace sparsight
