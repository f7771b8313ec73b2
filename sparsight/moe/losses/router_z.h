// The router z-loss of ST-MoE (Zoph et al. 2022, equation 5): keeps logits small. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// []: the mean over tokens of logsumexp(clean logits)². Does not depend on balance; (ln E)² for logits of 0. Undefined
// for a router without logits.
at::Tensor router_z_loss(const Routing& routing);

}  // namespace sparsight
