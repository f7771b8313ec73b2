// The positions of a map as rows, as layers for tokens take them.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// [B,D,H,W] -> [B,H*W,D], and back. A map that is channels last in memory is not copied.
inline at::Tensor rows_of_map(const at::Tensor& map) {
  return map.permute({0, 2, 3, 1}).reshape({map.size(0), map.size(2) * map.size(3), map.size(1)});
}
inline at::Tensor map_of_rows(const at::Tensor& rows, int64_t height, int64_t width) {
  return rows.view({rows.size(0), height, width, rows.size(2)}).permute({0, 3, 1, 2});
}

}  // namespace sparsight
