// Losses of routers that learn from labels (Routing::target). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// The guided loss of Mobile V-MoE (Daxberger et al. 2023, section 3): cross-entropy of the router's probabilities
// against the image's super-class.

// []: the mean over images, and over the tokens of each that are not padding, of -sum over experts of target * log
// softmax(clean logits); target: routing.target, [B,E], rows that sum to 1 (from RoutingContext::target). ln E for
// uniform logits; 0 if certain and correct. Undefined without a target.
// Differs from the paper: there the cross-entropy is of the gates after top-k, and infinite where the true super-class
// was not chosen.
at::Tensor superclass_loss(const Routing& routing);

// The loss that trains only the routers, in separate-training pMoE: Chowdhury et al. 2023, "Patch-level Routing
// in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", equation 6 (two classes) and
// appendix M.1 (pairs of classes).

// []: -sum over experts of the mean over the images of class e and its partner's of (target_e - target_partner(e)) *
// (sum over the image's tokens of clean logits_e), the partner of expert e being e + 1 for even e and e - 1 for odd e.
// Expert e learns to score the images of class e above those of its partner's class; images of other classes do not
// affect it. With E odd the last expert is trained against class 0, whose own expert stays in its pair with class 1.
// For two experts this is equation 6 with y = +1 for class 0. It is linear in the logits, so it has no lower bound; its
// gradient does not depend on the router's weights. 0 for uniform targets and for one expert. Undefined without a
// target (routing.target, [B,E]) or logits. The mean is weighted with target_e + target_partner(e).
at::Tensor separation_loss(const Routing& routing);

}  // namespace sparsight
