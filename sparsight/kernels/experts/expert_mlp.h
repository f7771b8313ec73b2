// Experts that are MLPs of two layers (ops/expert_mlp.h) in fp32. The work is split into tasks by the numbers of rows
// alone, never by the number of threads, and each thread takes the next task when it is free: results have the same
// bits for any number of threads. Letters: moe/axes.md; R rows (kept assignments), grouped by expert.
#pragma once

#include "sparsight/kernels/experts/residual_rows.h"
#include "sparsight/kernels/gemm/weight_view.h"
#include "sparsight/kernels/pack/packed_layout.h"
#include "sparsight/kernels/routing/rows.h"

namespace sparsight::cpu {

struct MlpShape {
  int64_t experts = 0, width = 0, hidden = 0, rows = 0;  // E, D, F, R
  int64_t width_blocks() const { return count_blocks(width); }
  int64_t chunks() const { return count_blocks(hidden); }
  int64_t chunk_columns(int64_t chunk, int64_t chunks = 1) const {
    return std::min(chunks * kBlock, hidden - chunk * kBlock);
  }
};

// Which token each row is, and which expert it belongs to.
struct ExpertRowNumbers {
  RowNumbers map;
  bool in_place = false;             // R = N, and row r holds token r
  const int64_t* offset = nullptr;   // [E+1]: expert e owns rows offset[e] .. offset[e+1]
  const float* gate = nullptr;       // [R], or null for ones
  const uint8_t* dropout = nullptr;  // bits [R,ceil(F/8)] of the hidden layer after its activation; or null
  float dropout_scale = 1;
};

// Weights as the kernels read them.
struct StoredExperts {
  MlpShape shape = {};
  const StoredExperts* each = nullptr;  // [E]: where weights and vectors are, if not here; empty for experts without
                                        // rows
  const float *b1 = nullptr, *b2 = nullptr;  // [E,F], [E,D], or null
  WeightView w1 = {}, w2 = {};               // [E,D,F], [E,F,D]; null if packed
  const void* panels = nullptr;              // packed weights in `layout`; null if plain
  PackedLayout layout = {};
  const float *scale1 = nullptr, *scale2 = nullptr;  // of int8: [E,F], [E,D]

  bool packed() const { return layout.panel > 0; }
  WeightType type() const { return packed() ? layout.type : WeightType::fp32; }
  // W1[:, columns] and W2[columns, :] of an expert, starting at a chunk of the hidden layer, and what belongs to them
  const void* first(int64_t expert, int64_t chunk) const {
    if (each) return each[expert].first(0, chunk);
    return packed() ? panel(expert, layout.first_weights(chunk)) : w1.at(expert, 0, chunk * kBlock);
  }
  const void* second(int64_t expert, int64_t chunk) const {
    if (each) return each[expert].second(0, chunk);
    return packed() ? panel(expert, layout.second_weights(chunk)) : w2.at(expert, chunk * kBlock, 0);
  }
  const float* first_bias(int64_t expert, int64_t chunk) const {
    return each ? each[expert].first_bias(0, chunk) : at(b1, expert * shape.hidden + chunk * kBlock);
  }
  const float* second_bias(int64_t expert) const {
    return each ? each[expert].second_bias(0) : at(b2, expert * shape.width);
  }
  const float* first_scale(int64_t expert, int64_t chunk) const {
    return each ? each[expert].first_scale(0, chunk) : at(scale1, expert * shape.hidden + chunk * kBlock);
  }
  const float* second_scale(int64_t expert) const {
    return each ? each[expert].second_scale(0) : at(scale2, expert * shape.width);
  }

 private:
  const void* panel(int64_t expert, int64_t byte) const {
    return static_cast<const char*>(panels) + expert * layout.expert_bytes() + byte;
  }
  static const float* at(const float* numbers, int64_t index) { return numbers ? numbers + index : nullptr; }
};

struct ExpertMlpForward {
  const float* tokens = nullptr;  // [N,D]
  Activation activation = Activation::gelu;
  bool bf16 = false;           // products of bf16, of plain weights
  ResidualRows residual = {};  // what becomes of the sums of the tokens
  float* kept = nullptr;       // [R,F]: receives the input of the activation, or its slope there; or null
  bool keeps_slope = false;
  float* out = nullptr;  // [N,D]
};
void expert_mlp_forward(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& experts,
                        const ExpertMlpForward& p);

struct ExpertMlpBackward {
  const float *grad = nullptr, *tokens = nullptr;  // [N,D]
  Activation activation = Activation::gelu;
  bool bf16 = false;            // products of bf16
  const float* kept = nullptr;  // from the forward pass, or null to compute it again
  bool kept_slope = false;      // then no gradient but that of the tokens, and no gates
  // What is null is not computed. The gradients of all weights go together; those of b1 and b2 may be null.
  float* tokens_grad = nullptr;           // [N,D]
  float* gate_grad = nullptr;             // [R]
  WeightView w1_grad = {}, w2_grad = {};  // [E,D,F], [E,F,D]
  float *b1_grad = nullptr, *b2_grad = nullptr;
};
// experts: plain.
void expert_mlp_backward(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& experts,
                         const ExpertMlpBackward& p);

}  // namespace sparsight::cpu
