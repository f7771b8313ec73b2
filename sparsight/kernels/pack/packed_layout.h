// The memory layout of packed experts: weights in the order in which products read them, one stream per task. The
// hidden layer is split into chunks of kBlock; each chunk has the panels of W1[:, chunk] and then those of W2[chunk,
// :]. A panel has some columns of its matrix and all rows: `depth` rows at a time, of these 16 columns at a time, and
// of these `group` consecutive rows of each column together.
// - Panels (panel_layout): 16 columns, row after row; bf16: two rows at a time, int8: four.
// - Tile registers of AMX (tile_layout, bf16): a tile has 16 rows of 64 bytes; a tile of B has `depth` rows and 16
//   columns, and every four bytes are a group. Two tiles side by side make a panel.
// Drawings: docs/kernels.md, "Packed weights" and "Packed tiles for AMX". Letters: moe/axes.md.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileBytes = kTileRows * 64;
constexpr int64_t kTilePanelColumns = 32;
constexpr int64_t kStepBytes = 2 * kTileBytes;  // of a panel of tiles: `depth` rows of it

inline int64_t rounded_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

struct PackedLayout {
  WeightType type;
  int64_t width, hidden;  // D, F
  int64_t panel, depth, group;

  int64_t element() const { return element_bytes(type); }
  // Padding is zeros.
  int64_t padded(int64_t columns) const { return rounded_up(columns, std::max(panel, depth)); }
  int64_t padded_rows(int64_t rows) const { return rounded_up(rows, depth); }

  int64_t chunks() const { return count_blocks(hidden); }
  int64_t chunk_columns(int64_t chunk) const { return std::min(kBlock, hidden - chunk * kBlock); }

  // Bytes, from the start of an expert.
  int64_t first_weights(int64_t chunk) const { return chunk * (first_bytes(kBlock) + second_bytes(kBlock)); }
  int64_t second_weights(int64_t chunk) const { return first_weights(chunk) + first_bytes(chunk_columns(chunk)); }
  int64_t expert_bytes() const { return second_weights(chunks() - 1) + second_bytes(chunk_columns(chunks() - 1)); }

 private:
  int64_t first_bytes(int64_t columns) const { return padded_rows(width) * padded(columns) * element(); }
  int64_t second_bytes(int64_t columns) const { return padded_rows(columns) * padded(width) * element(); }
};

inline PackedLayout panel_layout(WeightType type, int64_t width, int64_t hidden) {
  return {type, width, hidden, kPanelColumns, rows_together(type), rows_together(type)};
}
inline PackedLayout tile_layout(int64_t width, int64_t hidden) {
  return {WeightType::bf16, width, hidden, kTilePanelColumns, 32, rows_together(WeightType::bf16)};
}

}  // namespace sparsight::cpu
