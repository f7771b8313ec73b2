// The loss that trains only the routers, in separate-training pMoE: Chowdhury et al. 2023, "Patch-level Routing
// in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", equation 6 (two classes) and
// appendix M.1 (pairs of classes). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// []: -sum over experts of the mean over the images of class e and its partner's of (target_e - target_partner(e)) *
// (sum over the image's tokens of clean logits_e), the partner of expert e being e + 1 for even e and e - 1 for odd e.
// Expert e learns to score the images of class e above those of its partner's class; images of other classes do not
// affect it. With E odd the last expert is trained against class 0, whose own expert stays in its pair with class 1.
// With two experts this is equation 6 with y = +1 for class 0. Linear in the logits, so it has no lower bound; its
// gradient does not depend on the router's weights. 0 for uniform targets and for one expert. Undefined without a
// target (routing.target, [B,E]) or logits. The mean is weighted with target_e + target_partner(e).
at::Tensor separation_loss(const Routing& routing);

}  // namespace sparsight
