// The guided loss of Mobile V-MoE (Daxberger et al. 2023, section 3): cross-entropy of the router's probabilities
// against the image's super-class. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// []: the mean over images, and over the tokens of each that are not padding, of -sum over experts of target * log
// softmax(clean logits); target: routing.target, [B,E], rows that sum to 1 (from RoutingContext::target). ln E for
// uniform logits; 0 if certain and correct. Undefined without a target.
// Differs from the paper: there the cross-entropy is of the gates after top-k, and infinite where the true super-class
// was not chosen.
at::Tensor superclass_loss(const Routing& routing);

}  // namespace sparsight
