// The load loss of V-MoE (Riquelme et al. 2021, appendix A.2): a smooth count of each expert's tokens. Letters:
// moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// [N,E]: the probability that the expert's logit, with its noise drawn anew, reaches the token's k-th largest noisy
// logit. Differentiable, also through that threshold. Undefined where the routing has no noise of fixed size or does
// not choose a fixed number of experts per token.
at::Tensor load_probability(const Routing& routing);

// []: CV² of the mean of load_probability over tokens; undefined where that is. Differs from the paper: the batch is
// one group.
at::Tensor load_loss(const Routing& routing);

}  // namespace sparsight
