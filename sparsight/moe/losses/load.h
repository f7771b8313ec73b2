// Load: a smooth count of each expert's tokens, which has a gradient through the noise. Letters: moe/axes.md; G groups.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/moe/routing.h"

namespace sparsight {

// The standard normal distribution function.

// Accurate in the lower tail, where (1 + erf) / 2 cancels. Differentiable.
at::Tensor normal_cdf(const at::Tensor& z);

// The same for difference / scale, with `scale` the standard deviation of the noise. A learned scale may underflow to
// 0: it is clamped to 1e-6, below which it gets no gradient.
at::Tensor normal_cdf(const at::Tensor& difference, const at::Tensor& scale);

// The load loss of Shazeer et al. 2017 (appendix A, equations 8 to 11): a smooth count of each expert's tokens that has
// a gradient.

// noisy: [N,E], 1 <= k < E. Returns [N,E]: the k-th largest value of the token's row without the expert's own.
// Differentiable: the gradient goes to the one element that supplies the value.
at::Tensor kth_excluding(const at::Tensor& noisy, int64_t k);

// [N,E]: the probability that the token chooses the expert if only this expert's noise is resampled: the normal
// distribution function of (clean - t) / noise_scale, where t is kth_excluding of the noisy logits.
// Differentiable; through t too unless `threshold_gradient` is off (it is on in the published code, by automatic
// differentiation; the paper does not say). k = E: ones. Undefined where the routing has no noise or does not choose
// per token.
at::Tensor load_probability(const Routing& routing, bool threshold_gradient = true);

// [E]: sums of load_probability, or the router's own estimate; without noise the number of assignments (no gradient).
at::Tensor smooth_load(const Routing& routing, bool threshold_gradient = true);

// []: CV²(smooth_load) over the whole batch; undefined without noise. 0 at balance; E/k - 1 with all tokens on the same
// k experts.
at::Tensor load_loss(const Routing& routing, bool threshold_gradient = true, bool unbiased = false);

// The load loss of V-MoE (Riquelme et al. 2021, appendix A.2): one threshold per token, the k-th largest noisy logit of
// all experts (load_probability excludes the expert itself).

// [N,E]: the probability that the expert's logit, with its noise resampled, reaches the token's k-th largest noisy
// logit. Differentiable, also through that threshold. `of_scores`: the threshold is compared with the clean
// probabilities instead of the clean logits, as the library behind GMoE does (a bug, kept for comparison). Undefined
// where the routing has no noise or does not choose per token.
at::Tensor vmoe_load_probability(const Routing& routing, bool of_scores = false);

// []: the mean over groups of CV² of the sum of vmoe_load_probability over tokens; undefined where that is. 0 at
// balance; at most E - 1.
at::Tensor vmoe_load_loss(const Routing& routing, bool unbiased = false, bool of_scores = false);

}  // namespace sparsight
