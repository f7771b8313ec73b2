// The threshold loss of strictly balanced gating (Shazeer et al. 2017, appendix F, equation 20). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// []: the sum over tokens and experts of (M_th - M_bw) * (score - threshold), where M_th says which scores exceed their
// expert's threshold and M_bw what the batchwise training mask chose. Each term is at least 0; all are 0 where the
// masks agree. Its derivative with respect to a threshold is (rows chosen) - (rows that exceed it), to a score M_th -
// M_bw; the latter only with `score_gradient`, else scores are constants (the paper does not say). With two levels, the
// sum of both levels' losses. Undefined for a routing without thresholds.
at::Tensor threshold_loss(const Routing& routing, bool score_gradient = false);

}  // namespace sparsight
