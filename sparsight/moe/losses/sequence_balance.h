// The complementary balance loss of DeepSeek-V3 (section 2.1.2, equations 17 to 20): balance within each sequence, here
// each image. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// []: the mean over images of sum over experts of f * p: p the mean over the image's S tokens of score / sum of scores,
// f = E / (k S) * the number of its tokens with the expert among the k best scores (without balancing bias; constant in
// the backward pass). 1 at balance. Undefined for a router whose scores are not defined or that does not choose a fixed
// number of experts per token.
at::Tensor sequence_balance_loss(const Routing& routing);

}  // namespace sparsight
