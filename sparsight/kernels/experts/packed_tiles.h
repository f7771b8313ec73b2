// Packed experts on the tile registers of AMX: rows are converted to the type of the weights, which are used as they
// are stored. See gemm/amx.h.
#pragma once

#include "sparsight/kernels/experts/expert_mlp.h"

namespace sparsight::cpu {

// Whether tiles can compute products over the width D: the sum of D products of int8 numbers must fit into int32.
inline bool fits_tiles(int64_t width) { return width <= int64_t{1} << 17; }

// experts: packed in tiles; the active level is amx. tokens, out: [N,D]; residual: [N,D], added, or null.
void packed_tiles_forward(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& experts,
                          const float* tokens, Activation activation, const float* residual, float* out);

}  // namespace sparsight::cpu
