// Packed experts on the tile registers of AMX: rows are converted to the type of the weights, which are used as they
// are stored. See kernels_amx.h.
#pragma once

#include "sparsight/ops/cpu/packed_layout.h"
#include "sparsight/ops/packed_experts.h"

namespace sparsight::cpu {

// Whether tiles can compute products over the width D: the sum of D products of int8 numbers must fit into int32.
inline bool fits_tiles(int64_t width) { return width <= int64_t{1} << 17; }

// packed_experts() on checked arguments, with `packed.storage` in `layout`; the active level is amx.
at::Tensor packed_tiles_forward(const at::Tensor& tokens, const ExpertRows& rows, const PackedExperts& packed,
                                const PackedLayout& layout, Activation activation);

}  // namespace sparsight::cpu
