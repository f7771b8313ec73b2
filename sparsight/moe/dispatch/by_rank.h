// Experts on rows that came from several ranks, the rows of each rank by themselves: the arithmetic of ranks that have
// all experts. Letters: moe/axes.md; R ranks.
#pragma once

#include "sparsight/dist/exact_parts.h"
#include "sparsight/moe/experts.h"

namespace sparsight {

// rows: [N,D], by rank and then by expert. counts: [R,E'] int64, rows of each rank for each of the E' experts. context:
// its numbers in the order of rows. Returns [N,O]. Differentiable once; the gradients of parameters are left in
// `parts`.
at::Tensor compute_by_rank(Experts& experts, dist::ExactParts& parts, const at::Tensor& rows, const at::Tensor& counts,
                           const RowContext& context);

}  // namespace sparsight
