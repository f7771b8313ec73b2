// Experts and routed tokens for tests of the experts' operations: ragged groups, experts without rows, dropped
// assignments, sizes that fit no block.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "sparsight/kernels/isa/isa.h"
#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/sort_by_expert.h"
#include "tests/support/random_tensor.h"

namespace sparsight::test {

struct Case {
  at::Tensor tokens, upstream;
  ExpertRows rows;
  ExpertMlpWeights weights;
};

// expert: [N,K], kept: [N*K]; gates are random.
inline ExpertRows route(const at::Tensor& expert, const at::Tensor& kept, int64_t experts, uint64_t seed,
                        at::ScalarType type) {
  const int64_t tokens = expert.size(0), k = expert.size(1);
  const at::Tensor token = torch::arange(tokens, torch::kLong).unsqueeze(1).expand({tokens, k}).reshape({-1});
  const ExpertGroups groups = sort_by_expert(expert.reshape({-1}), kept, experts);
  return {map_rows(token, groups.order, tokens), groups.offsets,
          random_tensor({groups.order.size(0)}, seed, type).abs()};
}

struct Sizes {
  int64_t tokens, experts, k, width, hidden;
};

// Tokens choose experts at random, unevenly, and about one assignment in six is dropped. Weights of order
// 1/sqrt(inputs).
inline Case random_case(const Sizes& s, uint64_t seed, at::ScalarType type = torch::kFloat, bool bias = true) {
  Case c;
  const auto wide = [&](at::IntArrayRef sizes, uint64_t n, double scale) {
    return random_tensor(sizes, seed * 100 + n, type) * scale;
  };
  c.tokens = wide({s.tokens, s.width}, 1, 1);
  c.upstream = wide({s.tokens, s.width}, 2, 1);
  const at::Tensor draw = random_tensor({s.tokens, s.k}, seed * 100 + 3).abs() * 0.6 * static_cast<double>(s.experts);
  const at::Tensor expert = draw.clamp(0, static_cast<double>(s.experts - 1)).to(torch::kLong);
  const at::Tensor kept = random_tensor({s.tokens * s.k}, seed * 100 + 4) > -1.0;
  c.rows = route(expert, kept, s.experts, seed * 100 + 5, type);
  c.weights = {wide({s.experts, s.width, s.hidden}, 6, 1 / std::sqrt(s.width)),
               bias ? wide({s.experts, s.hidden}, 7, 1) : at::Tensor(),
               wide({s.experts, s.hidden, s.width}, 8, 1 / std::sqrt(s.hidden)),
               bias ? wide({s.experts, s.width}, 9, 1) : at::Tensor()};
  return c;
}

inline at::Tensor as_double(const at::Tensor& x) { return x.defined() ? x.to(torch::kDouble) : x; }

// Runs `body` at each instruction-set level of this machine.
template <class Body>
void at_each_level(const Body& body) {
  struct Restore {
    std::string previous = active_isa();
    ~Restore() { set_isa(previous); }  // also if a property fails, which throws
  } restore;
  for (const std::string& name : isa_names()) {
    set_isa(name);
    body(name);
  }
}

inline const std::vector<Sizes>& ragged_sizes() {
  static const std::vector<Sizes> sizes{
      {1, 1, 1, 1, 1},       {5, 3, 2, 7, 33},      {40, 4, 1, 33, 7},    {64, 3, 2, 64, 96},  {9, 16, 2, 48, 500},
      {300, 2, 2, 20, 40},   {700, 1, 1, 17, 19},   {30, 2, 1, 400, 800}, {25, 5, 3, 385, 30}, {0, 4, 2, 8, 16},
      {17, 1, 1, 384, 1536}, {11, 1, 2, 96, 1153},  {500, 9, 2, 31, 65},  {2, 60, 2, 50, 70},  {13, 1, 1, 800, 12},
      {150, 40, 2, 24, 900}, {1200, 34, 1, 20, 800}};
  return sizes;
}

}  // namespace sparsight::test
