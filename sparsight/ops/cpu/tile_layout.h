// How held experts lie in memory where the CPU multiplies tiles (AMX). A tile has 16 rows of 64 bytes; of B it holds
// `depth` rows and 16 columns, each four bytes of a row being `group` consecutive rows of one column. Two tiles side by
// side, 32 columns, make a panel; a panel's tiles lie in the order in which they are multiplied. The hidden layer is
// cut into chunks: the panels of W1[:, chunk] and then those of W2[chunk, :], one stream of memory for each task.
// Letters: moe/axes.md.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sparsight/ops/cpu/kernels.h"

namespace sparsight::cpu {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileBytes = kTileRows * 64;
constexpr int64_t kPanelColumns = 32;
constexpr int64_t kStepBytes = 2 * kTileBytes;  // of a panel: `depth` rows of it
constexpr int64_t kHiddenChunk = 384;

inline int64_t rounded_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

struct TileLayout {
  WeightType type;        // bf16 or int8
  int64_t width, hidden;  // D, F

  int64_t element() const { return type == WeightType::bf16 ? 2 : 1; }
  int64_t depth() const { return 64 / element(); }
  int64_t group() const { return 4 / element(); }
  // Padding is zeros.
  int64_t padded(int64_t columns) const { return rounded_up(columns, depth()); }
  int64_t padded_width() const { return padded(width); }

  int64_t chunks() const { return (hidden + kHiddenChunk - 1) / kHiddenChunk; }
  int64_t chunk_columns(int64_t chunk) const { return std::min(kHiddenChunk, hidden - chunk * kHiddenChunk); }

  // Bytes, from the start of an expert.
  int64_t first_weights(int64_t chunk) const { return 2 * padded_width() * chunk * kHiddenChunk * element(); }
  int64_t second_weights(int64_t chunk) const {
    return first_weights(chunk) + padded_width() * padded(chunk_columns(chunk)) * element();
  }
  int64_t expert_bytes() const { return 2 * padded_width() * padded_hidden() * element(); }

 private:
  int64_t padded_hidden() const { return (chunks() - 1) * kHiddenChunk + padded(chunk_columns(chunks() - 1)); }
};

}  // namespace sparsight::cpu
