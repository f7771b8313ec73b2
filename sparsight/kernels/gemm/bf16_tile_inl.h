// Micro-kernels for panels of bf16, which have two rows of the depth together: widened to fp32 in registers, or, on
// levels that multiply pairs of bf16, with rows of A rounded to bf16 too. Over a vector type V. Included by
// gemm/panels_inl.h.
#pragma once

#include "sparsight/kernels/gemm/tile_inl.h"

namespace sparsight::cpu {
namespace {

// The type of such weights where pairs are multiplied.
struct Bf16Pairs {
  uint16_t bits;
};

// a [depth] as bf16, with zeros up to a multiple of 2 * V::lanes.
template <class V>
void bf16_row(const float* a, int64_t depth, int16_t* row) {
  for (int64_t l = 0; l < depth; l += 2 * V::lanes) {
    const int64_t some = min(2 * V::lanes, depth - l);
    V::store_pairs(row + l, V::joined(load_some<V>(a + l, static_cast<int>(min(some, V::lanes))),
                                      load_some<V>(a + l + V::lanes, static_cast<int>(max(0, some - V::lanes)))));
  }
}

// kMr x (kNv vectors) elements of C. Rows of A: Tile::rounded.
template <class V, int kMr, int kNv>
void run_bf16_tile(const Tile& t) {
  const TileOfC<V, kMr, kNv> c(t);
  typename V::T acc[kMr][kNv];
  c.begin(acc);
  multiply_words<V, kMr, kNv, rows_together(WeightType::bf16), 1, uint16_t>(t, acc, V::load_bf16_pairs,
                                                                            V::add_bf16_pairs);
  c.end(acc);
}

// The same with A in fp32, one chain of multiply-adds per element.
template <class V, int kMr, int kNv>
void run_widened_tile(const Tile& t) {
  const TileOfC<V, kMr, kNv> c(t);
  typename V::T acc[kMr][kNv];
  c.begin(acc);
  const float* a = t.a;
  const uint16_t* b = static_cast<const uint16_t*>(t.b);
  const auto add = [&](int64_t l, const auto& load) __attribute__((always_inline)) {
    multiply_add<V, kMr, kNv>(
        acc, [&](int i) __attribute__((always_inline)) { return a[i * kBlockLd + l]; },
        [&](int v) __attribute__((always_inline)) {
          return load(b + (v / one_panel<V>() * t.b_panel + v % one_panel<V>() * 2 * V::lanes));
        });
  };
  const auto first = [](const uint16_t* p) __attribute__((always_inline)) { return V::load_first(p); };
  const auto second = [](const uint16_t* p) __attribute__((always_inline)) { return V::load_second(p); };
  fetching_steps(
      t, t.depth / 2, [&]() __attribute__((always_inline)) {
        add(0, first);
        add(1, second);
        a += 2;
        b += 2 * kPanelColumns;
      });
  if (t.depth % 2 != 0) add(0, first);
  c.end(acc);
}

}  // namespace
}  // namespace sparsight::cpu
