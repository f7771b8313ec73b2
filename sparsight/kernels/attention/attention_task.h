// What the attention kernels of each level compute on one thread: one head of one image. Raw pointers, as in kernels.h.
// Letters: S tokens, d size of the head.
#pragma once

#include <cstdint>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

// Keys and queries come in blocks (diagram: docs/kernels.md, "Attention"): keys of at most kBlock, so that a row of
// scores is a row of a block of activations, and queries of at most kQueries, whose scores stay in the L2 cache.
constexpr int64_t kQueries = 64;

// `count` things in as few runs as `limit` allows, of nearly equal length.
struct Runs {
  int64_t count, runs;
  Runs(int64_t things, int64_t limit) : count(things), runs((things + limit - 1) / limit) {}
  int64_t first(int64_t run) const { return run * count / runs; }
  int64_t length(int64_t run) const { return first(run + 1) - first(run); }
};

// Element (token, i) of q, k or v is at token * ld + i.
struct AttentionHead {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  int64_t ld = 0, tokens = 0, size = 0;
  float scale = 1;  // of the products of queries and keys
};

struct AttentionForward {
  AttentionHead head;
  const float* upcoming = nullptr;  // q of the head that comes next, which is prefetched; or null
  int64_t first = 0, count = 0;     // queries to compute
  float* out = nullptr;             // [S,d], rows out_ld apart
  int64_t out_ld = 0;
  bool bf16 = false;         // products in bf16, at the avx512_bf16 level
  float* log_sum = nullptr;  // [S], or null: receives log2 of the sum over keys of 2^(score log2 e)
  float* scratch = nullptr;  // attention_forward_floats() of them, 64-byte aligned
};

struct AttentionBackward {
  AttentionHead head;
  // The operands of the head that comes next, which are prefetched; or null.
  const float *upcoming = nullptr, *upcoming_out = nullptr, *upcoming_out_grad = nullptr;
  int64_t queries = 0;                              // Q, the first ones, which the forward pass computed
  const float *out = nullptr, *out_grad = nullptr;  // [Q,d], rows out_ld apart
  int64_t out_ld = 0;
  const float* log_sum = nullptr;                                 // [Q], of the forward pass
  bool bf16 = false;                                              // as in the forward pass
  float *q_grad = nullptr, *k_grad = nullptr, *v_grad = nullptr;  // [Q,d] and [S,d], rows head.ld apart
  float* scratch = nullptr;                                       // attention_backward_floats() of them
};

// Scratch is cut into arrays at multiples of 16 floats, the longest vector.
constexpr int64_t padded(int64_t floats) { return (floats + 15) / 16 * 16; }

// Sizes that all levels share: of packed keys or values, of a block of queries, of their scores.
inline int64_t packed_floats(int64_t size) { return kBlock * padded(size); }
inline int64_t query_floats(int64_t size) { return count_blocks(size) * kQueries * kBlockLd; }
constexpr int64_t kScoreFloats = kQueries * kBlockLd;

inline int64_t attention_forward_floats(int64_t tokens, int64_t size) {
  return 2 * packed_floats(size) + query_floats(size) + kScoreFloats + kBlockLd + 2 * padded(tokens);
}
inline int64_t attention_backward_floats(int64_t tokens, int64_t size) {
  return 5 * packed_floats(size) + 2 * query_floats(size) + 2 * kScoreFloats + kBlockLd + padded(tokens);
}

}  // namespace sparsight::cpu
