// The order in which products read matrices of weights: panels. A panel has some columns of the matrix and all of its
// rows, `depth` rows at a time, of these 16 columns at a time, and of these `group` consecutive rows of each column
// together. Drawings: docs/kernels.md, "Packed weights".
#pragma once

#include <algorithm>
#include <cstdint>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

struct PanelOrder {
  WeightType type = WeightType::fp32;
  int64_t panel = 0, depth = 0, group = 0;

  int64_t element() const { return element_bytes(type); }
  // Padding is zeros.
  int64_t padded(int64_t columns) const {
    const int64_t multiple = std::max(panel, depth);
    return (columns + multiple - 1) / multiple * multiple;
  }
  int64_t padded_rows(int64_t rows) const { return (rows + depth - 1) / depth * depth; }
  int64_t bytes(int64_t rows, int64_t columns) const { return padded_rows(rows) * padded(columns) * element(); }
};

// For vectors: `together` rows are stored together.
inline PanelOrder panel_order(WeightType type, int64_t together) { return {type, kPanelColumns, together, together}; }

}  // namespace sparsight::cpu
