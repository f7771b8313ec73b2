// The memory layout of packed experts: weights in the order in which products read them, one stream per task. The
// hidden layer is split into chunks of kBlock; each chunk has the panels (panels.h) of W1[:, chunk] and then those of
// W2[chunk, :].
// - Panels for vectors (panel_layout): 16 columns, row after row; bf16: two rows at a time, int8: four.
// - Tile registers of AMX (tile_layout, bf16): a tile has 16 rows of 64 bytes; a tile of B has `depth` rows and 16
//   columns, and every four bytes are a group. Two tiles side by side make a panel.
// Drawings: docs/kernels.md, "Packed weights" and "Packed tiles for AMX". Letters: moe/axes.md.
#pragma once

#include "sparsight/kernels/pack/packed_matrix.h"

namespace sparsight::cpu {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileBytes = kTileRows * 64;
constexpr int64_t kTilePanelColumns = 32;
constexpr int64_t kStepBytes = 2 * kTileBytes;  // of a panel of tiles: `depth` rows of it

struct PackedLayout : PanelOrder {
  int64_t width = 0, hidden = 0;  // D, F

  int64_t chunks() const { return count_blocks(hidden); }
  int64_t chunk_columns(int64_t chunk) const { return std::min(kBlock, hidden - chunk * kBlock); }

  // Bytes, from the start of an expert.
  int64_t first_weights(int64_t chunk) const { return chunk * (first_bytes(kBlock) + second_bytes(kBlock)); }
  int64_t second_weights(int64_t chunk) const { return first_weights(chunk) + first_bytes(chunk_columns(chunk)); }
  // Those matrices of an expert whose weights start at `expert`, without scales.
  PackedMatrix first_matrix(char* expert, int64_t chunk) const {
    return {*this, width, chunk_columns(chunk), expert + first_weights(chunk), nullptr};
  }
  PackedMatrix second_matrix(char* expert, int64_t chunk) const {
    return {*this, chunk_columns(chunk), width, expert + second_weights(chunk), nullptr};
  }
  int64_t expert_bytes() const { return second_weights(chunks() - 1) + second_bytes(chunk_columns(chunks() - 1)); }

 private:
  int64_t first_bytes(int64_t columns) const { return bytes(width, columns); }
  int64_t second_bytes(int64_t columns) const { return bytes(columns, width); }
};

inline PackedLayout panel_layout(WeightType type, int64_t width, int64_t hidden) {
  return {panel_order(type, rows_together(type)), width, hidden};
}
inline PackedLayout tile_layout(int64_t width, int64_t hidden) {
  return {{WeightType::bf16, kTilePanelColumns, 32, rows_together(WeightType::bf16)}, width, hidden};
}

}  // namespace sparsight::cpu
