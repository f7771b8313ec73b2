// Gathers token rows for the experts (permute) and scatter-adds them back (combine). A row belongs to one assignment
// (token, expert); rows are grouped by expert. Sums run in a fixed order, so results have the same bits on every run
// and for any number of threads. Letters: moe/axes.md; R rows (kept assignments).
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// Which token each row holds, and which rows each token has.
struct RowMap {
  int64_t tokens = 0;        // N
  at::Tensor row_token;      // [R] int64, 0..N-1
  at::Tensor token_rows;     // [R] int64: rows by token, in assignment order within a token
  at::Tensor token_offsets;  // [N+1] int64: token j has token_rows[token_offsets[j] .. token_offsets[j+1])
  bool in_place = false;     // R = N, and row r holds token r
};

// token: [A] int64, the token of each assignment. order: [R] int64, the assignment of each row.
RowMap map_rows(const at::Tensor& token, const at::Tensor& order, int64_t tokens);

// The functions below compute in fp32 for half types. weight: [R] of any floating type, or undefined for ones.

// values: [N,D]. Returns [R,D]: weight[r] * values[row_token[r]].
at::Tensor gather_rows(const at::Tensor& values, const at::Tensor& weight, const RowMap& map);
// rows: [R,D]. Returns [N,D]: the sum of weight[r] * rows[r] over the rows of each token; 0 for a token without rows.
at::Tensor scatter_add_rows(const at::Tensor& rows, const at::Tensor& weight, const RowMap& map);
// rows: [R,D], values: [N,D]. Returns [R] fp32 (fp64 for fp64): <rows[r], values[row_token[r]]>.
at::Tensor dot_rows(const at::Tensor& rows, const at::Tensor& values, const RowMap& map);

}  // namespace sparsight
