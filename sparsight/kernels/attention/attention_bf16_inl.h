// The products of attention (attention/attention_inl.h) in bf16: scores, probabilities and all gradients are fp32, and
// are rounded on their way into the next product. Over a vector type V. Included by isa/avx512_bf16.cpp.
#pragma once

#include "sparsight/kernels/attention/attention_inl.h"
#include "sparsight/kernels/gemm/bf16_inl.h"

namespace sparsight::cpu {
namespace {

template <class V>
struct Bf16Products {
  static_assert(V::lanes == kPanelColumns);

  // Panels of 16 columns as packed weights have them.
  static void pack(const float* matrix, int64_t ld, int64_t rows, int64_t columns, float* panels) {
    pack_bf16_panels<V>({matrix, ld, /*transposed=*/false, rows, columns, WeightType::bf16, panels});
  }
  static void pack_transposed(const float* matrix, int64_t ld, int64_t rows, int64_t columns, float* panels) {
    pack_bf16_panels<V>({matrix, ld, /*transposed=*/true, columns, rows, WeightType::bf16, panels});
  }

  static void multiply(const PanelProduct& p) {
    alignas(64) int16_t a[kQueries * kBlock];
    const int64_t panel = (p.depth + 1) / 2 * 2 * kPanelColumns;
    for (int64_t l = 0; l < p.depth; l += kBlock) {
      const int64_t depth = min(kBlock, p.depth - l);
      for (int64_t i = 0; i < p.rows; ++i)
        bf16_row<V>(p.a + l / kBlock * p.rows * kBlockLd + i * kBlockLd, depth, a + i * kBlock);
      Tile t = tile_of_depth(depth);
      t.b_panel = panel;
      t.start = p.accumulate || l > 0 ? Start::c : p.bias ? Start::bias : Start::zero;
      for_panels<V>(count_vectors<V>(p.columns), [&](auto vectors, int64_t j) {
        t.b = reinterpret_cast<const int16_t*>(p.panels) + j / kPanelColumns * panel + l * kPanelColumns;
        t.columns = min(vectors.value * V::lanes, p.columns - j);
        t.bias = p.bias ? p.bias + j : nullptr;
        run_rows<decltype(vectors)::value>(t, a, p.rows, p.c + j, p.c_ld);
      });
    }
  }

  // A has at most kQueries rows; kQueries of its columns are transposed at a time.
  static void multiply_transposed(const float* a, const float* b, int64_t rows, int64_t columns, int64_t depth,
                                  float* c, int64_t c_ld, bool accumulate) {
    alignas(64) int16_t left[kQueries * kBlock], right[kQueries * V::attention_tile().vectors * V::lanes];
    constexpr int64_t kPanel = kQueries * V::lanes;
    Tile t = tile_of_depth(depth);
    t.b = right, t.b_panel = kPanel;
    t.start = accumulate ? Start::c : Start::zero;
    for_panels<V>(count_vectors<V>(columns), [&](auto vectors, int64_t j) {
      t.columns = min(vectors.value * V::lanes, columns - j);
      for (int64_t v = 0; v < vectors.value; ++v) {
        const int64_t column = j + v * V::lanes;
        pair_rows<V>(b + column / kBlock * depth * kBlockLd + column % kBlock, kBlockLd, depth,
                     static_cast<int>(min(V::lanes, columns - column)), right + v * kPanel);
      }
      for (int64_t i = 0; i < rows; i += kQueries) {
        const int64_t some = min(kQueries, rows - i);
        bf16_columns<V>(a + i, kBlockLd, depth, some, left);
        run_rows<decltype(vectors)::value>(t, left, some, c + i * c_ld + j, c_ld);
      }
    });
  }

 private:
  static Tile tile_of_depth(int64_t depth) {
    thread_local Fetch nothing;
    Tile t{};
    t.depth = depth, t.every = depth + 1;
    t.fetch = &nothing;
    return t;
  }

  template <int kVectors, int... kRows>
  static TileFunction tile_for(int64_t rows, std::integer_sequence<int, kRows...>) {
    static constexpr TileFunction table[] = {V::template bf16_tile<kRows + 1, kVectors>...};
    return table[rows - 1];
  }
  // a: [rows,kBlock].
  template <int kVectors>
  static void run_rows(Tile& t, const int16_t* a, int64_t rows, float* c, int64_t c_ld) {
    constexpr int kMr = rows_of_tile<V, kVectors>();
    const RowGroups groups(rows, kMr);
    t.c_ld = c_ld;
    for (int64_t g = 0; g < groups.count; ++g) {
      t.rounded = a + groups.first(g) * kBlock;
      t.c = c + groups.first(g) * c_ld;
      tile_for<kVectors>(groups.rows(g), std::make_integer_sequence<int, kMr>{})(t);
    }
  }
};

}  // namespace
}  // namespace sparsight::cpu
