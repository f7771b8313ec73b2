// GEMMs with int8 weights on vectors: each block of a row of A is quantised to 16-bit integers with one scale, and
// pairs of products are summed exactly in 32 bits, which takes half the instructions of fp32 multiply-adds. A quantised
// row is s q with q = round(x / s), s = max|x| / 32767, so within max|x| / 65534 of x. Over a vector type V. Included
// by gemm/panels_inl.h.
#pragma once

#include "sparsight/kernels/gemm/tile_inl.h"

namespace sparsight::cpu {
namespace {

constexpr float kMaxQuantised = 32767;
static_assert(kBlock * 32768 * 127 < int64_t{1} << 31);  // no sum over a block overflows

// Quantises x [count] to -limit .. limit. Returns the scale, which is NaN if any x is not finite.
template <class V>
float quantise_row(const float* x, int64_t count, int16_t* quantised, float limit = kMaxQuantised) {
  auto maximum = V::set1(0.0f), check = V::set1(0.0f);
  for_vectors<V>(count, [&](int64_t c, int some) {
    const auto value = load_some<V>(x + c, some);
    maximum = V::max(maximum, V::max(value, V::mul(value, V::set1(-1.0f))));
    check = V::fma(value, V::set1(0.0f), check);
  });
  float lanes[V::lanes], largest = 0;
  V::store(lanes, maximum);
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  const auto inverse = V::set1(largest > 0 ? limit / largest : 0.0f);
  for_vectors<V>(count, [&](int64_t c, int some) {
    int16_t whole[V::lanes];
    V::store_quantised(some == V::lanes ? quantised + c : whole, V::mul(load_some<V>(x + c, some), inverse));
    if (some < V::lanes) std::memcpy(quantised + c, whole, static_cast<size_t>(some) * sizeof(int16_t));
  });
  if (count % 2 != 0) quantised[count] = 0;  // weights are padded to pairs
  return largest / limit + V::sum(check);
}

// Writes kMr x (kNv vectors) elements of C: sum(i, v) is a vector of int32, which is scaled.
template <class V, int kMr, int kNv, class Sum>
[[gnu::always_inline]] inline void end_integer_tile(const Tile& t, const Sum& sum) {
  const TileOfC<V, kMr, kNv> c(t);
  typename V::T acc[kMr][kNv];
  c.begin(acc);
  c.each([&](int i, int v) {
    acc[i][v] = V::fma(V::to_float(sum(i, v)), V::mul(V::set1(t.row_scale[i]), c.load(t.scale, v)), acc[i][v]);
  });
  c.end(acc);
}

// The int8 micro-kernel, with sums in registers.
template <class V, int kMr, int kNv>
void run_integer_tile(const Tile& t) {
  typename V::Ints sum[kMr][kNv];
  TileOfC<V, kMr, kNv>::each([&](int i, int v) { sum[i][v] = V::no_sum(); });
  multiply_pairs<V, kMr, kNv, int8_t>(t, sum, V::load_pairs, V::add_pairs);
  end_integer_tile<V, kMr, kNv>(t, [&](int i, int v) { return sum[i][v]; });
}

}  // namespace
}  // namespace sparsight::cpu
