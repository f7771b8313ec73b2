// The load loss of Shazeer et al. 2017 (appendix A, equations 8 to 11): a smooth count of each expert's tokens that has
// a gradient. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

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

}  // namespace sparsight
