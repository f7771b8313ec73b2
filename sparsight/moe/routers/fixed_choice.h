// Shared by routers that learn nothing: choices without scores, and gates of 1/k.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// expert: [N,K] int64, distinct in each row. like: gives the gates their device and type (fp64 for fp64, else fp32).
Routing route_fixed(const at::Tensor& expert, int64_t experts, const at::Tensor& like);

}  // namespace sparsight
