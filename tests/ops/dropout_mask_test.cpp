#include "sparsight/ops/dropout_mask.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/expert_mlp.h"
#include "sparsight/ops/ref/expert_mlp.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/gradcheck.h"

namespace sparsight::dropout_mask_test {
namespace {

using test::as_double;
using test::at_each_level;
using test::Case;
using test::ragged_sizes;
using test::random_case;
using test::Sizes;

Case case_with_dropout(const Sizes& s, uint64_t seed, at::ScalarType type = torch::kFloat) {
  Case c = random_case(s, seed, type);
  const int64_t rows = c.rows.map.row_token.size(0);
  c.rows.dropout = dropout_mask({rows, s.hidden, torch::arange(rows, torch::kLong) * 3}, 0.7, RandomStream(seed, "x"));
  return c;
}

// The result, and the gradients of tokens, gates and weights.
std::vector<at::Tensor> on_kernels(const Case& c, bool keep) {
  at::Tensor pre_activation;
  const at::Tensor out =
      cpu::expert_mlp_forward(c.tokens, c.rows, c.weights, Activation::gelu, keep ? &pre_activation : nullptr);
  const ExpertMlpGradients g =
      cpu::expert_mlp_backward(c.upstream, c.tokens, c.rows, c.weights, Activation::gelu, pre_activation, {});
  return {out, g.tokens, g.gate, g.weights.w1, g.weights.b1, g.weights.w2, g.weights.b2};
}

// The same by automatic differentiation of the definition in fp64, expert by expert.
std::vector<at::Tensor> by_definition(const Case& c) {
  const ExpertMlpWeights& w = c.weights;
  std::vector<at::Tensor> leaves{c.tokens, c.rows.gate, w.w1, w.b1, w.w2, w.b2};
  for (at::Tensor& leaf : leaves) leaf = as_double(leaf).detach().clone().requires_grad_(true);
  const at::Tensor mask = dropout_factors(c.rows.dropout, w.w1.size(2), leaves[0]);
  at::Tensor out = torch::zeros(c.tokens.sizes(), torch::kDouble);
  for (int64_t e = 0; e < w.w1.size(0); ++e) {
    const int64_t from = c.rows.offsets[e].item<int64_t>(), to = c.rows.offsets[e + 1].item<int64_t>();
    const at::Tensor token = c.rows.map.row_token.slice(0, from, to);
    const at::Tensor hidden =
        at::gelu(at::addmm(leaves[3][e], leaves[0].index_select(0, token), leaves[2][e])) * mask.slice(0, from, to);
    out = out.index_add(0, token,
                        at::addmm(leaves[5][e], hidden, leaves[4][e]) * leaves[1].slice(0, from, to).unsqueeze(1));
  }
  (out * as_double(c.upstream)).sum().backward();
  std::vector<at::Tensor> results{out.detach()};
  for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

}  // namespace

TEST(DropoutMask, HasTheBitsOfTheFactorsAtEveryLevelAndWidth) {
  const at::Tensor like = torch::empty({0});
  const RandomStream stream(3, "dropout", 7);
  at_each_level([&](const std::string& level) {
    for (const int64_t columns : {1, 4, 7, 8, 24, 100, 136, 1536})
      for (const double keep : {0.9, 0.5, 1e-9, 1 - 1e-12}) {
        const RandomRows rows{5, columns, torch::tensor({9, 0, 1, 123456789, 4}, torch::kLong)};
        const DropoutMask mask = dropout_mask(rows, keep, stream);
        EXPECT_EQ(mask.bits.size(1), (columns + 7) / 8);
        EXPECT_TRUE(torch::equal(dropout_factors(mask, columns, like), keep_mask_rows(like, rows, keep, stream)))
            << level << " " << columns << " " << keep;
      }
  });
}

TEST(DropoutMask, IsAppliedInTheFusedExpertsAtEveryLevelAndShape) {
  at_each_level([](const std::string& level) {
    uint64_t seed = 1;
    for (const Sizes& s : ragged_sizes()) {
      Case c = case_with_dropout(s, seed++);
      c.upstream = c.upstream * 0.3;
      const auto want = by_definition(c);
      for (const bool keep : {true, false}) {
        const auto got = on_kernels(c, keep);
        for (size_t i = 0; i < want.size(); ++i)
          EXPECT_TRUE(torch::allclose(as_double(got[i]), want[i], 2e-5, 5e-5)) << level << " " << seed << " " << i;
      }
    }
  });
}

TEST(DropoutMask, OfExpertsHasTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const Case c = case_with_dropout({300, 5, 2, 64, 800}, 11);
  at::set_num_threads(1);
  const auto one = on_kernels(c, true);
  for (const int n : {2, 4}) {
    at::set_num_threads(n);
    const auto more = on_kernels(c, true);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(torch::equal(one[i], more[i])) << n << " " << i;
  }
  at::set_num_threads(threads);
}

TEST(DropoutMask, GradientsOfExpertsAgreeWithCentralDifferences) {
  for (const bool recompute : {false, true}) {
    const Case c = case_with_dropout({6, 3, 2, 3, 11}, 7, torch::kDouble);
    const ExpertMlpWeights& w = c.weights;
    const auto loss = [&] {
      return (expert_mlp(c.tokens, c.rows, w, {Activation::gelu, recompute}) * c.upstream).sum();
    };
    EXPECT_LT(test::gradient_error(loss, {c.tokens, c.rows.gate, w.w1, w.b1, w.w2, w.b2}), 1e-7);
  }
}

TEST(DropoutMask, OfAnotherShapeIsRefused) {
  Case c = case_with_dropout({30, 3, 2, 24, 50}, 10);
  EXPECT_NO_THROW(expert_mlp(c.tokens, c.rows, c.weights, {}));
  c.rows.dropout.bits = c.rows.dropout.bits.narrow(1, 0, 6).contiguous();
  EXPECT_THROW(expert_mlp(c.tokens, c.rows, c.weights, {}), Error);
  c.rows.dropout.bits = torch::zeros({c.rows.map.row_token.size(0), 7}, torch::kInt);
  EXPECT_THROW(expert_mlp(c.tokens, c.rows, c.weights, {}), Error);
}

}  // namespace sparsight::dropout_mask_test
