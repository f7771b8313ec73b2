// Attention of one head without a matrix of scores in memory (flash attention: Dao et al. 2022, arXiv:2205.14135): a
// block of keys is packed into panels once, and multiplied with block after block of queries. Scores are in powers of
// two: q k / sqrt(d) * log2(e), so that a probability is 2^(score - log sum). Over a vector type V. Included by
// isa/level_inl.h.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "sparsight/kernels/attention/attention_task.h"
#include "sparsight/kernels/gemm/gemm_tn_inl.h"
#include "sparsight/kernels/gemm/tile_inl.h"
#include "sparsight/kernels/pack/pack_inl.h"

namespace sparsight::cpu {
namespace {

constexpr float kLog2E = 1.44269504088896341f, kLn2 = 0.693147180559945309f;

// ---- products with a packed operand ---------------------------------------------------------------------------------

// Calls body(number of vectors, first column) for each panel of some vectors of columns: the widest that tiles take,
// then narrower ones, down to one vector.
template <class V, int kVectors = V::attention_tile().vectors, class Body>
[[gnu::always_inline]] inline void for_panels(int64_t vectors, const Body& body, int64_t first = 0) {
  for (; first + kVectors <= vectors; first += kVectors)
    body(std::integral_constant<int, kVectors>{}, first * V::lanes);
  if constexpr (kVectors > 1) for_panels<V, kVectors / 2>(vectors, body, first);
}
template <class V>
constexpr int64_t count_vectors(int64_t columns) {
  return (columns + V::lanes - 1) / V::lanes;
}

// Narrower tiles have more rows, so that as many sums are in flight.
template <class V, int kVectors>
constexpr int rows_of_tile() {
  constexpr TileShape kShape = V::attention_tile();
  constexpr int kRows = kShape.rows * kShape.vectors / kVectors;
  return kRows < 14 ? kRows : 14;
}
template <class V, int kVectors, int... kRows>
TileFunction select_attention_tile(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction table[] = {run_tile<V, kRows + 1, kVectors, Source::rows>...};
  return table[rows - 1];
}

// C [rows,columns] = A B (+ bias, + C): A in blocks of kBlock columns, B in panels.
struct PanelProduct {
  const float *a, *panels;
  int64_t rows, columns, depth;
  float* c;
  int64_t c_ld;
  bool accumulate;
  const float* bias;
  Fetch* fetch;  // what is prefetched meanwhile
};
template <class V>
void multiply_panels(const PanelProduct& p) {
  Tile t{};
  t.c_ld = p.c_ld, t.fetch = p.fetch;
  for_panels<V>(count_vectors<V>(p.columns), [&](auto vectors, int64_t j) {
    constexpr int kNv = decltype(vectors)::value, kMr = rows_of_tile<V, kNv>();
    const RowGroups groups(p.rows, kMr);
    t.b_ld = kNv * V::lanes;
    t.columns = min(kNv * V::lanes, p.columns - j);
    t.bias = p.bias ? p.bias + j : nullptr;
    for (int64_t l = 0; l < p.depth; l += kBlock) {
      t.depth = min(kBlock, p.depth - l);
      t.every = p.fetch->every(groups.count * t.depth);
      t.start = p.accumulate || l > 0 ? Start::c : p.bias ? Start::bias : Start::zero;
      t.b = p.panels + j * p.depth + l * t.b_ld;
      for (int64_t g = 0; g < groups.count; ++g) {
        t.a = p.a + l / kBlock * p.rows * kBlockLd + groups.first(g) * kBlockLd;
        t.c = p.c + groups.first(g) * p.c_ld + j;
        select_attention_tile<V, kNv>(groups.rows(g), std::make_integer_sequence<int, kMr>{})(t);
      }
    }
  });
}

// C [rows,columns] = A^T B (+ C): A [depth,rows] with rows kBlockLd apart, B in blocks, of `depth` rows.
template <class V>
void multiply_transposed(const float* a, const float* b, int64_t rows, int64_t columns, int64_t depth, float* c,
                         int64_t c_ld, bool accumulate) {
  Tile t{};
  t.a = a, t.a_ld = t.b_ld = kBlockLd;
  t.depth = depth, t.c_ld = c_ld;
  t.start = accumulate ? Start::c : Start::zero;
  for_panels<V>(count_vectors<V>(columns), [&](auto vectors, int64_t j) {
    constexpr int kNv = decltype(vectors)::value;
    t.b = b + j / kBlock * depth * kBlockLd + j % kBlock;
    t.columns = kNv * V::lanes;
    t.c = c + j;
    outer_rows<V, TileShape{rows_of_tile<V, kNv>(), kNv}>(t, nullptr, rows);
  });
}

// ---- packing --------------------------------------------------------------------------------------------------------

// Panels of matrix [rows,columns]: as B of a product, and transposed as B^T.
template <class V>
void pack_panels(const float* matrix, int64_t ld, int64_t rows, int64_t columns, float* panels) {
  for_panels<V>(count_vectors<V>(columns), [&](auto vectors, int64_t j) {
    constexpr int64_t kWidth = decltype(vectors)::value * V::lanes;
    pack_rows(matrix + j, ld, rows, min(kWidth, columns - j), kWidth, panels + j * rows);
  });
}
template <class V>
void pack_panels_transposed(const float* matrix, int64_t ld, int64_t rows, int64_t columns, float* panels) {
  for_panels<V>(count_vectors<V>(rows), [&](auto vectors, int64_t j) {
    constexpr int64_t kWidth = decltype(vectors)::value * V::lanes;
    pack_transposed<V>(matrix + j * ld, ld, columns, min(kWidth, rows - j), kWidth, panels + j * columns);
  });
}

// to[c] = factor * from[c]
template <class V>
void copy_scaled(const float* from, float factor, int64_t count, float* to) {
  const auto f = V::set1(factor);
  for_vectors<V>(count,
                 [&](int64_t c, int some) { store_some<V>(to + c, V::mul(f, load_some<V>(from + c, some)), some); });
}

// Rows as blocks (kernels.h), padded with zeros to whole vectors.
template <class V>
void pack_blocks(const float* rows, int64_t ld, int64_t count, int64_t size, float factor, float* blocks) {
  const auto f = V::set1(factor);
  for (int64_t i = 0; i < count; ++i)
    for_vectors<V>(size, [&](int64_t c, int some) {
      V::store(blocks + c / kBlock * count * kBlockLd + i * kBlockLd + c % kBlock,
               V::mul(f, load_some<V>(rows + i * ld + c, some)));
    });
}

// The products of attention in fp32.
template <class V>
struct Fp32Products {
  static void pack(const float* matrix, int64_t ld, int64_t rows, int64_t columns, float* panels) {
    pack_panels<V>(matrix, ld, rows, columns, panels);
  }
  static void pack_transposed(const float* matrix, int64_t ld, int64_t rows, int64_t columns, float* panels) {
    pack_panels_transposed<V>(matrix, ld, rows, columns, panels);
  }
  static void multiply(const PanelProduct& p) { multiply_panels<V>(p); }
  static void multiply_transposed(const float* a, const float* b, int64_t rows, int64_t columns, int64_t depth,
                                  float* c, int64_t c_ld, bool accumulate) {
    sparsight::cpu::multiply_transposed<V>(a, b, rows, columns, depth, c, c_ld, accumulate);
  }
};

// ---- softmax --------------------------------------------------------------------------------------------------------

// 2^x for x below 127, within 2 ulp; 0 below -126. Coefficients fitted to the minimum relative error on [-0.5, 0.5].
template <class V>
inline typename V::T exponential_of_two(typename V::T x) {
  x = V::max(V::set1(-200.0f), x);
  const auto n = V::round(x), r = V::fma(n, V::set1(-1.0f), x);
  auto p = V::set1(1.5345810971e-4f);
  p = V::fma(p, r, V::set1(1.3399930904e-3f));
  p = V::fma(p, r, V::set1(9.6184890717e-3f));
  p = V::fma(p, r, V::set1(5.5503286421e-2f));
  p = V::fma(p, r, V::set1(2.4022646248e-1f));
  p = V::fma(p, r, V::set1(6.9314718246e-1f));
  p = V::fma(p, r, V::set1(1.0f));
  return V::select_negative(V::add(x, V::set1(126.0f)), V::set1(0.0f), V::mul(p, V::power_of_two(n)));
}

template <class V>
inline float largest(typename V::T x) {
  float lane[V::lanes];
  V::store(lane, x);
  for (int half = V::lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lane[i] = lane[i] > lane[i + half] ? lane[i] : lane[i + half];
  return lane[0];
}

// Scores of one query become 2^(score - maximum); maximum and sum are those of all keys so far. Returns the factor of
// what was computed with the previous maximum.
template <class V>
inline float softmax_row(float* score, int64_t vectors, float* maximum, float* sum) {
  auto top = V::set1(*maximum);
  for (int64_t i = 0; i < vectors; ++i) top = V::max(top, V::load(score + i * V::lanes));
  const float previous = *maximum, now = largest<V>(top);
  const auto shift = V::set1(-now);
  LaneSums<V> total;
  for_steps<V>(vectors * V::lanes, [&](int64_t c, int, auto part) {
    const auto p = exponential_of_two<V>(V::add(V::load(score + c), shift));
    V::store(score + c, p);
    total.add(part, p);
  });
  float factor[V::lanes], updated[V::lanes];
  const auto change = exponential_of_two<V>(V::set1(previous - now));
  V::store(factor, change);
  V::store(updated, V::fma(V::set1(*sum), change, V::set1(total.total())));
  *maximum = now, *sum = updated[0];
  return factor[0];
}

// Scores of one query become probabilities, and the gradients of the probabilities those of the scores.
template <class V>
inline void softmax_backward_row(float* score, float* grad, int64_t vectors, float log_sum, float delta) {
  const auto shift = V::set1(-log_sum), mean = V::set1(-delta);
  for (int64_t i = 0; i < vectors; ++i) {
    const auto p = exponential_of_two<V>(V::add(V::load(score + i * V::lanes), shift));
    V::store(score + i * V::lanes, p);
    V::store(grad + i * V::lanes, V::mul(p, V::add(V::load(grad + i * V::lanes), mean)));
  }
}

// Scores of keys that only fill the last vector of a block are -infinity: their probability is 0.
template <class V>
void mask_padding(int64_t keys, float* mask) {
  for (int64_t j = 0; j < count_vectors<V>(keys) * V::lanes; ++j) mask[j] = j < keys ? 0.0f : -__builtin_inff();
}

// ---- prefetching ----------------------------------------------------------------------------------------------------

// Queries, keys and values of a head like `h`, or their gradients; q: its queries, or null.
inline Fetch fetch_of_head(const AttentionHead& h, const float* q) {
  constexpr int64_t kSize = sizeof(float);
  return Fetch::of_several(q, h.tokens, h.size * kSize, h.ld * kSize, 3, (h.k - h.q) * kSize);
}

// ---- one head -------------------------------------------------------------------------------------------------------

// Takes arrays from scratch memory.
class Cut {
 public:
  explicit Cut(float* memory) : next_(memory) {}
  float* floats(int64_t count) {
    float* const here = next_;
    next_ += padded(count);
    return here;
  }

 private:
  float* next_;
};

template <class V, class Products = Fp32Products<V>>
void attention_forward(const AttentionForward& p) {
  const AttentionHead& h = p.head;
  Cut scratch(p.scratch);
  float *const keys = scratch.floats(packed_floats(h.size)), *const values = scratch.floats(packed_floats(h.size));
  float *const queries = scratch.floats(query_floats(h.size)), *const scores = scratch.floats(kScoreFloats);
  float* const mask = scratch.floats(kBlockLd);
  float *const maximum = scratch.floats(p.count), *const sum = scratch.floats(p.count);
  for (int64_t i = 0; i < p.count; ++i) maximum[i] = -__builtin_inff(), sum[i] = 0;
  Fetch nothing, next = fetch_of_head(h, p.upcoming);
  const Runs key_blocks(h.tokens, kBlock), query_blocks(p.count, kQueries);
  for (int64_t block = 0; block < key_blocks.runs; ++block) {
    const int64_t j = key_blocks.first(block), columns = key_blocks.length(block), vectors = count_vectors<V>(columns);
    const bool last = block + 1 == key_blocks.runs;
    Products::pack_transposed(h.k + j * h.ld, h.ld, columns, h.size, keys);
    Products::pack(h.v + j * h.ld, h.ld, columns, h.size, values);
    mask_padding<V>(columns, mask);
    for (int64_t part = 0; part < query_blocks.runs; ++part) {
      const int64_t first = query_blocks.first(part), rows = query_blocks.length(part);
      float* const out = p.out + (p.first + first) * p.out_ld;
      pack_blocks<V>(h.q + (p.first + first) * h.ld, h.ld, rows, h.size, h.scale * kLog2E, queries);
      Products::multiply({queries, keys, rows, vectors * V::lanes, h.size, scores, kBlockLd, false, mask, &next});
      for (int64_t i = 0; i < rows; ++i) {
        const float factor = softmax_row<V>(scores + i * kBlockLd, vectors, maximum + first + i, sum + first + i);
        if (block > 0) copy_scaled<V>(out + i * p.out_ld, factor, h.size, out + i * p.out_ld);
      }
      Products::multiply({scores, values, rows, h.size, columns, out, p.out_ld, block > 0, nullptr, &nothing});
      if (!last) continue;
      for (int64_t i = 0; i < rows; ++i)
        copy_scaled<V>(out + i * p.out_ld, 1 / sum[first + i], h.size, out + i * p.out_ld);
    }
  }
  if (!p.log_sum) return;
  for (int64_t i = 0; i < p.count; ++i) p.log_sum[p.first + i] = maximum[i] + __builtin_log2f(sum[i]);
}

template <class V, class Products = Fp32Products<V>>
void attention_backward(const AttentionBackward& p) {
  const AttentionHead& h = p.head;
  const int64_t width = padded(h.size), packed = packed_floats(h.size);
  Cut scratch(p.scratch);
  float *const keys_t = scratch.floats(packed), *const keys = scratch.floats(packed);
  float* const values_t = scratch.floats(packed);
  float *const k_grad = scratch.floats(packed), *const v_grad = scratch.floats(packed);
  float *const queries = scratch.floats(query_floats(h.size)), *const out_grad = scratch.floats(query_floats(h.size));
  float *const scores = scratch.floats(kScoreFloats), *const grads = scratch.floats(kScoreFloats);
  float *const mask = scratch.floats(kBlockLd), *const delta = scratch.floats(h.tokens);
  Fetch gradients = fetch_of_head(h, p.q_grad), next = fetch_of_head(h, p.upcoming);
  Fetch outputs =
      Fetch::of_several(p.upcoming_out, p.queries, h.size * sizeof(float), p.out_ld * sizeof(float), 2,
                        reinterpret_cast<uintptr_t>(p.upcoming_out_grad) - reinterpret_cast<uintptr_t>(p.upcoming_out));
  for (int64_t i = 0; i < p.queries; ++i) delta[i] = dot<V>(p.out + i * p.out_ld, p.out_grad + i * p.out_ld, h.size);
  const Runs key_blocks(h.tokens, kBlock), query_blocks(p.queries, kQueries);
  for (int64_t block = 0; block < key_blocks.runs; ++block) {
    const int64_t j = key_blocks.first(block), columns = key_blocks.length(block), vectors = count_vectors<V>(columns);
    const bool last = block + 1 == key_blocks.runs;
    Products::pack_transposed(h.k + j * h.ld, h.ld, columns, h.size, keys_t);
    Products::pack_transposed(h.v + j * h.ld, h.ld, columns, h.size, values_t);
    Products::pack(h.k + j * h.ld, h.ld, columns, h.size, keys);
    mask_padding<V>(columns, mask);
    for (int64_t part = 0; part < query_blocks.runs; ++part) {
      const int64_t first = query_blocks.first(part), rows = query_blocks.length(part);
      float* const q_grad = p.q_grad + first * h.ld;
      pack_blocks<V>(h.q + first * h.ld, h.ld, rows, h.size, h.scale * kLog2E, queries);
      pack_blocks<V>(p.out_grad + first * p.out_ld, p.out_ld, rows, h.size, 1, out_grad);
      Products::multiply(
          {queries, keys_t, rows, vectors * V::lanes, h.size, scores, kBlockLd, false, mask, &gradients});
      Products::multiply(
          {out_grad, values_t, rows, vectors * V::lanes, h.size, grads, kBlockLd, false, nullptr, &outputs});
      for (int64_t i = 0; i < rows; ++i)
        softmax_backward_row<V>(scores + i * kBlockLd, grads + i * kBlockLd, vectors, p.log_sum[first + i],
                                delta[first + i]);
      Products::multiply_transposed(scores, out_grad, columns, h.size, rows, v_grad, width, part > 0);
      Products::multiply_transposed(grads, queries, columns, h.size, rows, k_grad, width, part > 0);
      Products::multiply({grads, keys, rows, h.size, columns, q_grad, h.ld, block > 0, nullptr, &next});
      if (last)
        for (int64_t i = 0; i < rows; ++i) copy_scaled<V>(q_grad + i * h.ld, h.scale, h.size, q_grad + i * h.ld);
    }
    for (int64_t i = 0; i < columns; ++i) {
      copy_scaled<V>(k_grad + i * width, kLn2, h.size, p.k_grad + (j + i) * h.ld);
      copy_scaled<V>(v_grad + i * width, 1, h.size, p.v_grad + (j + i) * h.ld);
    }
  }
}

}  // namespace
}  // namespace sparsight::cpu
