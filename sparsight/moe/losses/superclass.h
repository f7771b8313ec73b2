// The guided loss of Mobile V-MoE (Daxberger et al. 2023, section 3): cross-entropy of the router's probabilities
// against the image's super-class. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// []: the mean over tokens (or images, where one routing per image is made) of -sum over experts of target * log
// softmax(clean logits); target: routing.target, [B,E], rows that sum to 1 (RoutingContext::target hands it in). ln E
// for indifferent logits; 0 when sure and right. Undefined without a target. Differs from the paper: it feeds the gates
// after top-k, whose cross-entropy is infinite where the true super-class was not chosen.
at::Tensor superclass_loss(const Routing& routing);

}  // namespace sparsight
