#include "bench/moe/contenders.h"

#include <vector>

#include <ATen/ATen.h>

#include "bench/measure/rounds.h"
#include "sparsight/core/random.h"
#include "sparsight/nn/parameter_memory.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/ops/sort_by_expert.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight::bench {
namespace {

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed, const char* purpose) {
  return normal_like(at::empty({0}), sizes, RandomStream(seed, purpose));
}

Load random_load(int64_t tokens, int64_t experts, int64_t k, uint64_t seed) {
  Load load;
  load.tokens = normal({tokens, kWidth}, seed, "tokens");
  load.out_grad = normal({tokens, kWidth}, seed, "out_grad");
  const at::Tensor scores = at::softmax(normal({tokens, experts}, seed, "scores"), 1);
  load.expert = top_experts(scores, k);
  load.gate = scores.gather(1, load.expert);
  const at::Tensor expert = load.expert.reshape({-1});
  const ExpertGroups groups = sort_by_expert(expert, at::ones_like(expert, at::kBool), experts);
  const at::Tensor token = at::arange(tokens).unsqueeze(1).expand({tokens, k}).reshape({-1});
  load.row_gate_order = groups.order;
  load.rows = {map_rows(token, groups.order, tokens), groups.offsets,
               load.gate.reshape({-1}).index_select(0, groups.order)};
  load.touched = (groups.offsets.diff() > 0).sum().item<int64_t>();
  return load;
}

}  // namespace

std::vector<Load> random_loads(int64_t tokens, int64_t experts, int64_t k) {
  std::vector<Load> loads;
  for (int i = 0; i < kLoads; ++i) loads.push_back(random_load(tokens, experts, k, static_cast<uint64_t>(i)));
  return loads;
}

ExpertMlpWeights random_weights(int64_t experts, int64_t hidden) {
  const auto parameter = [](at::IntArrayRef sizes, const char* purpose) {
    return parameter_zeros(sizes).copy_(normal(sizes, 1, purpose)).mul_(0.05);  // the memory of a model's parameters
  };
  return {parameter({experts, kWidth, hidden}, "w1"), parameter({experts, hidden}, "b1"),
          parameter({experts, hidden, kWidth}, "w2"), parameter({experts, kWidth}, "b2")};
}

at::Tensor run_ours(const Load& load, const ExpertMlpWeights& weights) {
  return expert_mlp(load.tokens, load.rows, weights, {});
}

at::Tensor run_packed(const Load& load, const PackedExperts& packed) {
  return packed_experts(load.tokens, load.rows, packed, Activation::gelu);
}

at::Tensor run_dense(const Load& load, const ExpertMlpWeights& w) {
  const int64_t k = load.expert.size(1);
  at::Tensor rows = load.tokens;
  if (k > 1) rows = rows.repeat({k, 1});
  const at::Tensor out = at::addmm(w.b2[0], at::gelu(at::addmm(w.b1[0], rows, w.w1[0])), w.w2[0]);
  return k > 1 ? out.narrow(0, 0, load.tokens.size(0)) : out;
}

at::Tensor run_loop(const Load& load, const ExpertMlpWeights& w) {
  at::Tensor out = at::zeros_like(load.tokens);
  for (int64_t e = 0; e < w.w1.size(0); ++e) {
    const at::Tensor hits = at::nonzero(load.expert == e);
    if (hits.size(0) == 0) continue;
    const at::Tensor token = hits.select(1, 0), rank = hits.select(1, 1);
    const at::Tensor hidden = at::gelu(at::addmm(w.b1[e], load.tokens.index_select(0, token), w.w1[e]));
    const at::Tensor rows = at::addmm(w.b2[e], hidden, w.w2[e]);
    out = out.index_add(0, token, rows * at::index(load.gate, {token, rank}).unsqueeze(1));
  }
  return out;
}

at::Tensor run_grouped_mm(const Load& load, const ExpertMlpWeights& w) {
  const at::Tensor& token = load.rows.map.row_token;
  const at::Tensor ends = load.rows.offsets.slice(0, 1).to(at::kInt);
  const at::Tensor expert = load.expert.reshape({-1}).index_select(0, load.row_gate_order);
  const at::Tensor rows = load.tokens.index_select(0, token);
  const at::Tensor hidden = at::gelu(at::_grouped_mm(rows, w.w1, ends) + w.b1.index_select(0, expert));
  const at::Tensor out = at::_grouped_mm(hidden, w.w2, ends) + w.b2.index_select(0, expert);
  return at::zeros_like(load.tokens).index_add(0, token, out * load.rows.gate.unsqueeze(1));
}

at::Tensor run_onednn(const Load& load, const OnednnExperts& experts) {
  const at::Tensor& token = load.rows.map.row_token;
  const at::Tensor rows = load.tokens.index_select(0, token);
  const int64_t* const offset = load.rows.offsets.const_data_ptr<int64_t>();
  std::vector<at::Tensor> out;
  for (size_t e = 0; e < experts.w1.size(); ++e) {
    const int64_t count = offset[e + 1] - offset[e];
    if (count == 0) continue;
    const at::Tensor hidden = onednn_product(rows.narrow(0, offset[e], count), experts.w1[e], experts.b1[e], true);
    out.push_back(onednn_product(hidden, experts.w2[e], experts.b2[e], false));
  }
  return at::zeros_like(load.tokens).index_add(0, token, at::cat(out) * load.rows.gate.unsqueeze(1));
}

void train_step(const Forward& forward, const Load& load, const ExpertMlpWeights& weights) {
  Load in = load;
  in.tokens = load.tokens.detach().requires_grad_(true);
  in.gate = load.gate.detach().requires_grad_(true);
  in.rows.gate = in.gate.reshape({-1}).index_select(0, load.row_gate_order);
  const at::Tensor loss = (forward(in, weights) * load.out_grad).sum();
  loss.backward();
  for (const at::Tensor* w : {&weights.w1, &weights.b1, &weights.w2, &weights.b2}) w->mutable_grad().reset();
}

}  // namespace sparsight::bench
