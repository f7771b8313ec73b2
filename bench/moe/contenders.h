// Implementations of the experts of one MoE layer on given routings, forward and in training. Letters:
// sparsight/moe/axes.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "bench/moe/onednn.h"
#include "sparsight/ops/packed_experts.h"

namespace sparsight::bench {

constexpr int64_t kWidth = 384, kHidden = 1536;  // D and F of ViT-S

// A batch of tokens and its routing.
struct Load {
  at::Tensor tokens;          // [T,D]
  at::Tensor expert;          // [T,K] int64
  at::Tensor gate;            // [T,K]
  ExpertRows rows;            // the same, sorted by expert
  at::Tensor row_gate_order;  // [R]: rows.gate = gate.flatten()[row_gate_order]
  at::Tensor out_grad;        // [T,D]: gradient of the result
  int64_t touched = 0;        // experts with rows
};
// Returns kLoads of them.
std::vector<Load> random_loads(int64_t tokens, int64_t experts, int64_t k);

ExpertMlpWeights random_weights(int64_t experts, int64_t hidden = kHidden);

// Runs the experts: [T,D].
using Forward = std::function<at::Tensor(const Load&, const ExpertMlpWeights&)>;
at::Tensor run_ours(const Load& load, const ExpertMlpWeights& weights);
at::Tensor run_packed(const Load& load, const PackedExperts& packed);
// The dense MLP of expert 0 over all T*K rows, for comparison.
at::Tensor run_dense(const Load& load, const ExpertMlpWeights& weights);
// For each expert: find its tokens, two linear maps, index_add.
at::Tensor run_loop(const Load& load, const ExpertMlpWeights& weights);
// The rows sorted by expert: at::_grouped_mm, index_add.
at::Tensor run_grouped_mm(const Load& load, const ExpertMlpWeights& weights);
// The rows sorted by expert: oneDNN's linear layers with packed weights, the first with GELU fused; index_add.
at::Tensor run_onednn(const Load& load, const OnednnExperts& experts);

// One forward and backward pass; gradients of tokens, gates and weights are allocated again, as after zero_grad().
void train_step(const Forward& forward, const Load& load, const ExpertMlpWeights& weights);

}  // namespace sparsight::bench
