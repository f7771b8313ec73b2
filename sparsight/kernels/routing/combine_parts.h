// Combine (scatter-add): sums the rows of each token, in a fixed order.
#pragma once

#include "sparsight/kernels/experts/residual_rows.h"
#include "sparsight/kernels/routing/rows.h"

namespace sparsight::cpu {

// Results of rows, [parts,R,width] with stride `ld` in floats from row to row.
struct RowParts {
  const float* rows = nullptr;
  int64_t ld = 0, parts = 1, width = 0;
};

// out[j] = sum over the rows r of token j, and over parts, of gate[r] * rows[part][r]. gate: [R], or null for ones;
// residual: what becomes of the sums; out: [N,width].
void combine_parts(Threads& threads, const RowNumbers& map, const float* gate, const RowParts& from, float* out,
                   const ResidualRows& residual = {});

}  // namespace sparsight::cpu
