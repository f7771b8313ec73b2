// Packs a block of B into a panel, the order in which tiles read it. Over a vector type V. Included by isa/level_inl.h.
#pragma once

#include <cstring>

#include "sparsight/kernels/elementwise/elementwise_inl.h"

namespace sparsight::cpu {
namespace {

// panel[l][j] = b(l, j) = b[l * b_ld + j] for depth x columns, with zeros up to `width` columns.
inline void pack_rows(const float* b, int64_t b_ld, int64_t depth, int64_t columns, int64_t width, float* panel) {
  for (int64_t l = 0; l < depth; ++l) {
    std::memcpy(panel + l * width, b + l * b_ld, static_cast<size_t>(columns) * sizeof(float));
    for (int64_t j = columns; j < width; ++j) panel[l * width + j] = 0;
  }
}
// The same for a transposed B: b(l, j) = b[j * b_ld + l].
template <class V>
void pack_transposed(const float* b, int64_t b_ld, int64_t depth, int64_t columns, int64_t width, float* panel) {
  constexpr int kLanes = V::lanes;
  for (int64_t j = 0; j < width; j += kLanes) {
    const int64_t some = min(kLanes, columns - j);
    const bool whole = some == kLanes;
    float padded[kLanes * kLanes];  // the rows of B that are there, and zeros
    if (!whole) std::memset(padded, 0, sizeof(padded));
    int64_t l = 0;
    for (; l + kLanes <= depth; l += kLanes) {
      const float* const from = b + j * b_ld + l;
      if (!whole)
        for (int64_t i = 0; i < some; ++i) V::store(padded + i * kLanes, V::load(from + i * b_ld));
      V::transpose(whole ? from : padded, whole ? b_ld : kLanes, panel + l * width + j, width);
    }
    for (; l < depth; ++l)
      for (int64_t i = 0; i < kLanes; ++i) panel[l * width + j + i] = i < some ? b[(j + i) * b_ld + l] : 0;
  }
}
template <class V>
void pack(bool transposed, const float* b, int64_t b_ld, int64_t depth, int64_t columns, int64_t width, float* panel) {
  transposed ? pack_transposed<V>(b, b_ld, depth, columns, width, panel)
             : pack_rows(b, b_ld, depth, columns, width, panel);
}

// Into panels of fp32 (kernels.h).
template <class V>
void pack_panels(const PanelPacking& p) {
  for (int64_t j = 0; j < p.columns; j += kPanelColumns)
    pack<V>(p.transposed, p.transposed ? p.matrix + j * p.ld : p.matrix + j, p.ld, p.depth,
            min(kPanelColumns, p.columns - j), kPanelColumns, static_cast<float*>(p.panels) + j * p.depth);
}

}  // namespace
}  // namespace sparsight::cpu
