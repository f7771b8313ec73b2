// Compares the operations on CUDA tensors with those on the CPU: built with the preset "cuda" only.
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "sparsight/ops/grouped_linear.h"
#include "sparsight/ops/top_experts.h"
#include "tests/ops/expert_cases.h"

namespace sparsight::cuda_test {
namespace {

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  }
};

at::Tensor moved(const at::Tensor& x) { return x.defined() ? x.to(torch::kCUDA) : x; }

void expect_close(const at::Tensor& on_cuda, const at::Tensor& on_cpu) {
  EXPECT_TRUE(on_cuda.is_cuda());
  EXPECT_TRUE(torch::allclose(on_cuda.cpu(), on_cpu));
}

}  // namespace

TEST_F(Cuda, S36_P80_ChoosesSortsAndMovesRowsAsOnTheCpu) {
  // One decimal, so that in some rows the k-th largest score is a tie.
  const at::Tensor scores = (test::random_tensor({50, 7}, 1) * 10).round() / 10;
  const at::Tensor falling = std::get<0>(scores.sort(1, /*descending=*/true));
  ASSERT_TRUE((falling.select(1, 1) == falling.select(1, 2)).any().item<bool>());
  const at::Tensor chosen = top_experts(scores, 2).reshape({-1});
  EXPECT_TRUE(torch::equal(top_experts(moved(scores), 2).cpu().reshape({-1}), chosen));
  const at::Tensor kept = test::random_tensor({100}, 2) > -1.0, token = torch::arange(50).repeat_interleave(2);
  const ExpertGroups groups = sort_by_expert(chosen, kept, 7), there = sort_by_expert(moved(chosen), moved(kept), 7);
  EXPECT_TRUE(torch::equal(there.order.cpu(), groups.order));
  EXPECT_TRUE(torch::equal(there.offsets.cpu(), groups.offsets));
  EXPECT_TRUE(torch::equal(count_by_expert(moved(chosen), 7).cpu(), count_by_expert(chosen, 7)));

  const RowMap map = map_rows(token, groups.order, 50), map_there = map_rows(moved(token), there.order, 50);
  EXPECT_TRUE(torch::equal(map_there.token_rows.cpu(), map.token_rows));
  const at::Tensor values = test::random_tensor({50, 9}, 3), weight = test::random_tensor({map.row_token.size(0)}, 4);
  const at::Tensor rows = gather_rows(values, weight, map);
  expect_close(gather_rows(moved(values), moved(weight), map_there), rows);
  expect_close(scatter_add_rows(moved(rows), moved(weight), map_there), scatter_add_rows(rows, weight, map));
  expect_close(dot_rows(moved(rows), moved(values), map_there), dot_rows(rows, values, map));
}

// In fp64: no rounding of matrix units.
TEST_F(Cuda, P80_ExpertsAndTheirGradientsAreThoseOfTheCpu) {
  uint64_t seed = 1;
  for (const test::Sizes& sizes : test::ragged_sizes()) {
    const test::Case c = test::random_case(sizes, seed++, torch::kDouble);
    std::vector<at::Tensor> results[2];
    for (const bool there : {false, true}) {
      const auto leaf = [&](const at::Tensor& x) { return (there ? moved(x) : x.clone()).requires_grad_(true); };
      const auto at_place = [&](const at::Tensor& x) { return there ? moved(x) : x; };
      const at::Tensor tokens = leaf(c.tokens), gate = leaf(c.rows.gate);
      const ExpertMlpWeights w{leaf(c.weights.w1), leaf(c.weights.b1), leaf(c.weights.w2), leaf(c.weights.b2)};
      const RowMap& map = c.rows.map;
      const ExpertRows rows{
          {map.tokens, at_place(map.row_token), at_place(map.token_rows), at_place(map.token_offsets)},
          at_place(c.rows.offsets),
          gate};
      const at::Tensor out = expert_mlp(tokens, rows, w, {});
      out.backward(at_place(c.upstream));
      results[there] = {out, tokens.grad(), gate.grad(), w.w1.grad(), w.b1.grad(), w.w2.grad(), w.b2.grad()};
    }
    for (size_t i = 0; i < results[0].size(); ++i) expect_close(results[1][i], results[0][i]);
  }
}

TEST_F(Cuda, GroupedLinearMapsAreThoseOfTheCpu) {
  const at::Tensor rows = test::random_tensor({11, 5}, 1, torch::kDouble), offsets = torch::tensor({0, 4, 4, 11});
  const at::Tensor weight = test::random_tensor({3, 5, 6}, 2, torch::kDouble);
  const at::Tensor bias = test::random_tensor({3, 6}, 3, torch::kDouble);
  expect_close(grouped_linear(moved(rows), moved(offsets), moved(weight), moved(bias)),
               grouped_linear(rows, offsets, weight, bias));
}

}  // namespace sparsight::cuda_test
