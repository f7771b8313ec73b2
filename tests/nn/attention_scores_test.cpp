#include "sparsight/nn/attention_scores.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"
#include "tests/support/typed_gradcheck.h"

namespace sparsight::attention_scores_test {
namespace {

// The worked example T18 of the specification.
struct Example {
  at::Tensor x, y;
  AttentionScoreWeights weights;

  explicit Example(at::ScalarType type)
      : x(torch::tensor({{.5, -1.}, {1., .25}}, type)),
        y(torch::tensor({{.3, .7}, {-.6, .2}}, type)),
        weights{torch::tensor({{.4, -.2}, {.1, .5}}, type), torch::tensor({{.3, .6}, {-.5, .2}}, type),
                torch::tensor({1., -2.}, type)} {}
};

}  // namespace

TEST(AttentionScores, S39_ReproduceT18) {
  for (const auto type : {torch::kDouble, torch::kFloat}) {
    const Example e(type);
    const double tol = type == torch::kDouble ? 1e-6 : 1e-5;
    const at::Tensor product = torch::tensor({{0.307096, -0.359641}, {-0.055667, -0.155811}}, type);
    const at::Tensor additive = torch::tensor({{0.387162, 1.273714}, {-0.316907, 0.895318}}, type);
    EXPECT_TRUE(torch::allclose(product_attention_scores(e.x, e.y, e.weights), product, 0, tol));
    EXPECT_TRUE(torch::allclose(additive_attention_scores(e.x, e.y, e.weights), additive, 0, tol));
    // The specification prints no gradients: central differences give them.
    for (const auto scores : {product_attention_scores, additive_attention_scores}) {
      const auto loss = [&](const std::vector<at::Tensor>& leaf) {
        const at::Tensor all = scores(leaf[0], leaf[1], {leaf[2], leaf[3], leaf[4]});
        return (all * test::random_tensor({2, 2}, 6, all.scalar_type())).sum();
      };
      const auto& w = e.weights;
      EXPECT_LT(test::gradient_error_in(type, loss, {e.x, e.y, w.source, w.target, w.mix}), tol);
    }
  }
}

TEST(AttentionScores, WorkOnBatchesOfUnequalLengthsAndHaveRightGradients) {
  const at::Tensor x = test::random_tensor({2, 3, 4}, 1), y = test::random_tensor({2, 5, 6}, 2);
  const AttentionScoreWeights w{test::random_tensor({4, 7}, 3), test::random_tensor({6, 7}, 4),
                                test::random_tensor({7}, 5)};
  const at::Tensor upstream = test::random_tensor({2, 3, 5}, 6);
  for (const auto scores : {product_attention_scores, additive_attention_scores}) {
    const at::Tensor all = scores(x, y, w);
    ASSERT_EQ(all.sizes(), (std::vector<int64_t>{2, 3, 5}));
    EXPECT_TRUE(torch::allclose(all[1], scores(x[1], y[1], w), 1e-12, 1e-12));
    EXPECT_LT(
        test::gradient_error([&] { return (scores(x, y, w) * upstream).sum(); }, {x, y, w.source, w.target, w.mix}),
        1e-7);
  }
}

}  // namespace sparsight::attention_scores_test
