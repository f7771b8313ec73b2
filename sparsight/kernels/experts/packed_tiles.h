// Experts packed in tiles of bf16 on the tile registers of AMX: rows are rounded to bf16. See gemm/amx.h.
#pragma once

#include "sparsight/kernels/experts/expert_mlp.h"

namespace sparsight::cpu {

// experts: packed in tiles; the active level is amx. tokens, out: [N,D]; residual: [N,D], added, or null.
void packed_tiles_forward(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& experts,
                          const float* tokens, Activation activation, const float* residual, float* out);

}  // namespace sparsight::cpu
