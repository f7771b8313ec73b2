// The load loss of V-MoE (Riquelme et al. 2021, appendix A.2): one threshold per token, the k-th largest noisy logit of
// all experts (losses/load.h excludes the expert itself). Letters: moe/axes.md; G groups.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// [N,E]: the probability that the expert's logit, with its noise resampled, reaches the token's k-th largest noisy
// logit. Differentiable, also through that threshold. `of_scores`: the threshold is compared with the clean
// probabilities instead of the clean logits, as the library behind GMoE does (a bug, kept for comparison). Undefined
// where the routing has no noise or does not choose per token.
at::Tensor vmoe_load_probability(const Routing& routing, bool of_scores = false);

// []: the mean over groups of CV² of the sum of vmoe_load_probability over tokens; undefined where that is. 0 at
// balance; at most E - 1.
at::Tensor vmoe_load_loss(const Routing& routing, bool unbiased = false, bool of_scores = false);

}  // namespace sparsight
