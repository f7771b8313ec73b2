// GEMMs with int8 weights on vectors: each block of a row of A is quantised to int8 with one scale, and products are
// summed exactly in 32 bits. A quantised row is s q with q = round(x / s) and s = max|x| / 127, so within max|x| / 254
// of x. Over a vector type V. Included by gemm/panels_inl.h.
#pragma once

#include <bit>

#include "sparsight/kernels/gemm/tile_inl.h"

namespace sparsight::cpu {
namespace {

constexpr float kMaxQuantised = 127, kNothing = 1e-30f;  // rows without larger numbers become zeros
constexpr int64_t kQuantisedUnit = 64;                   // rows end with zeros, up to a multiple of this
static_assert(kBlock * 255 * 127 < int64_t{1} << 31);    // no sum over a block overflows
static_assert(kBlock % kQuantisedUnit == 0);

// Calls body(first, vectors) for x [count] in steps of several vectors, with zeros up to a multiple of kQuantisedUnit.
template <class V, class Body>
[[gnu::always_inline]] inline void for_quantised(const float* x, int64_t count, const Body& body) {
  constexpr int64_t kStep = V::quantised_together * V::lanes;
  static_assert(kQuantisedUnit % kStep == 0);
  typename V::T values[V::quantised_together];
  int64_t c = 0;
  for (; c + kStep <= count; c += kStep) {
#pragma GCC unroll 4
    for (int i = 0; i < V::quantised_together; ++i) values[i] = V::load(x + c + i * V::lanes);
    body(c, values);
  }
  for (; c < (count + kQuantisedUnit - 1) / kQuantisedUnit * kQuantisedUnit; c += kStep) {
#pragma GCC unroll 4
    for (int i = 0; i < V::quantised_together; ++i)
      values[i] = load_some<V>(x + c + i * V::lanes, static_cast<int>(min(V::lanes, max(0, count - c - i * V::lanes))));
    body(c, values);
  }
}

// Quantises x [count], with zeros up to a multiple of kQuantisedUnit. Returns the scale, which is NaN or infinite if
// any x is.
template <class V>
float quantise_row(const float* x, int64_t count, typename V::Quantised* quantised) {
  using Vectors = typename V::T[V::quantised_together];
  // Compared as integers, magnitudes of floats keep their order, with infinity and NaN above all others.
  auto most = V::no_sum();
  for_quantised<V>(
      x, count, [&](int64_t, const Vectors& values) __attribute__((always_inline)) {
        for (const auto& value : values) most = V::larger(most, V::magnitude(value));
      });
  const auto largest = std::bit_cast<float>(V::largest(most));
  const auto inverse = V::set1(largest > kNothing ? kMaxQuantised / largest : 0.0f);
  for_quantised<V>(
      x, count, [&](int64_t c, Vectors & values) __attribute__((always_inline)) {
        for (auto& value : values) value = V::mul(value, inverse);
        V::store_quantised(quantised + c, values);
      });
  return largest / kMaxQuantised;
}

// C = the sums of a row times the scales of the row and of each column, plus what C starts from.
template <class V>
[[gnu::always_inline]] inline typename V::T scaled(typename V::Ints sum, typename V::T row_scale,
                                                   typename V::T column_scale, typename V::T start) {
  return V::fma(V::to_float(sum), V::mul(row_scale, column_scale), start);
}

// The int8 micro-kernel: kMr x (kNv vectors) elements of C, summed as int32 in registers and scaled at the end.
template <class V, int kMr, int kNv>
void run_integer_tile(const Tile& t) {
  typename V::Ints sum[kMr][kNv];
  const TileOfC<V, kMr, kNv> c(t);
  c.each([&](int i, int v) { sum[i][v] = v == 0 ? V::set_int(t.row_start[i]) : sum[i][0]; });
  multiply_words<V, kMr, kNv, rows_together(WeightType::int8), V::quad_words, int8_t>(t, sum, V::load_quads,
                                                                                      V::add_quads);
  typename V::T acc[kMr][kNv];
  c.begin(acc);
  c.each(
      [&](int i, int v) { acc[i][v] = scaled<V>(sum[i][v], V::set1(t.row_scale[i]), c.load(t.scale, v), acc[i][v]); });
  c.end(acc);
}

}  // namespace
}  // namespace sparsight::cpu
