// The reference version of ops/rows.h, on any device. Sums run in row order, not in assignment order.
#pragma once

#include "sparsight/ops/rows.h"

namespace sparsight::ref {

RowMap map_rows(const at::Tensor& token, const at::Tensor& order, int64_t tokens);
at::Tensor gather_rows(const at::Tensor& values, const at::Tensor& weight, const RowMap& map);
at::Tensor scatter_add_rows(const at::Tensor& rows, const at::Tensor& weight, const RowMap& map);
at::Tensor dot_rows(const at::Tensor& rows, const at::Tensor& values, const RowMap& map);

}  // namespace sparsight::ref
