// Top-k selection: the k experts of each token with the highest scores.
#pragma once

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

// scores: [N,E]; chosen: [N,k], 1 <= k <= E: distinct experts by decreasing score. Equal scores: the lowest index
// first. NaN ranks after everything else. For T = float and double.
template <class T>
void top_experts(Threads& threads, const T* scores, int64_t tokens, int64_t experts, int64_t k, int64_t* chosen);

}  // namespace sparsight::cpu
