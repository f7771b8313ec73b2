// What a sum over ranks takes on this machine, for `sparsight doctor`.
#pragma once

#include <cstdint>

namespace sparsight::dist {

// Seconds in which two ranks, threads of this process that talk over loopback, sum up gradients of so many fp32
// numbers: the best of some times. Raises Error without a backend.
double two_rank_sum_seconds(int64_t numbers);

}  // namespace sparsight::dist
