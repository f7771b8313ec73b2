// Held experts on tile registers: the rows of tokens meet the weights as they are stored. See kernels_amx.h.
#pragma once

#include "sparsight/ops/cpu/tile_layout.h"
#include "sparsight/ops/held_experts.h"

namespace sparsight::cpu {

// Whether the layout's products can be computed: int32 holds the sum of products of two bytes over the width.
inline bool fits_tiles(const TileLayout& layout) { return layout.width <= int64_t{1} << 17; }

// held_experts() on checked arguments, with `held.tiles` in `layout`; the active level is amx.
at::Tensor held_tiles_forward(const at::Tensor& tokens, const ExpertRows& rows, const HeldExperts& held,
                              const TileLayout& layout, Activation activation);

}  // namespace sparsight::cpu
