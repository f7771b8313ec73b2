// Combine (scatter-add): sums the rows of each token, in a fixed order.
#pragma once

#include "sparsight/ops/cpu/residual_rows.h"
#include "sparsight/ops/rows.h"

namespace sparsight::cpu {

// out[j] = sum over the rows r of token j, and over parts, of gate[r] * rows[part][r]. rows: [parts,R] rows with stride
// `ld` in floats; gate: [R], or null for ones; residual: what becomes of the sums; out: [N,width].
void combine_parts(const Kernels& kernels, const RowMap& map, const float* gate, const float* rows, int64_t ld,
                   int64_t parts, int64_t width, float* out, const ResidualRows& residual = {});

}  // namespace sparsight::cpu
