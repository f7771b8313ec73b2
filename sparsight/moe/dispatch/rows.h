// Gathers the tokens' rows for their experts and combines the outputs. Letters: moe/axes.md; R kept assignments.
#pragma once

#include "sparsight/moe/routing.h"
#include "sparsight/ops/rows.h"

namespace sparsight {

// [N,D] -> [R,D]: each row's token, grouped by expert. Differentiable.
at::Tensor gather_rows(const at::Tensor& tokens, const RowMap& map);

// [R,D] -> [N,D]: the gate-weighted sum of each token's rows, by increasing rank; 0 for a token without rows.
// row_gate: [R]. Differentiable in both.
at::Tensor combine_rows(const at::Tensor& rows, const at::Tensor& row_gate, const RowMap& map);

// The map of a routing's kept assignments, and their gates in its order: [R].
RowMap routing_map(const Routing& routing);
at::Tensor row_gates(const Routing& routing);

}  // namespace sparsight
