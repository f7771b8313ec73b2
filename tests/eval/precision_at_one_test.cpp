#include "sparsight/eval/precision_at_one.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/eval/task_loss.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::precision_at_one_test {

// Largest logits at 0, 1, 2 and, of two equal ones, at 0. Labels {0, 2}, {0}, {2} and {0, 1}: three hits of four.
TEST(PrecisionAtOne, A34_CountsImagesWhoseBestClassIsAmongTheirLabels) {
  const at::Tensor logits = torch::tensor({{3., 1., 2.}, {1., 3., 2.}, {1., 2., 3.}, {2., 2., 0.}});
  const at::Tensor labels = torch::tensor({{1, 0, 1}, {1, 0, 0}, {0, 0, 1}, {1, 1, 0}}, torch::kLong);
  PrecisionAtOne all = precision_at_one(logits, labels);
  EXPECT_EQ(all.images, 4);
  EXPECT_EQ(all.hits, 3);
  EXPECT_EQ(all.precision(), 0.75);
  EXPECT_EQ(all.false_discovery_rate(), 0.25);
  EXPECT_EQ(precision_at_one(logits, labels.to(torch::kFloat)).hits, 3);
  // An image without labels is a false discovery.
  const at::Tensor none = torch::zeros({4, 3}, torch::kLong);
  EXPECT_EQ(precision_at_one(logits, none).false_discovery_rate(), 1);
  all.add(precision_at_one(logits, none));
  EXPECT_EQ(all.precision(), 3.0 / 8);
}

TEST(PrecisionAtOne, A34_IsTheErrorWhereImagesHaveOneLabel) {
  const at::Tensor logits = test::random_tensor({500, 7}, 1), classes = torch::arange(500, torch::kLong) % 7;
  const auto error = 1 - static_cast<double>(count_correct(logits, classes)) / 500;
  EXPECT_NEAR(precision_at_one(logits, torch::one_hot(classes, 7)).false_discovery_rate(), error, 1e-12);
  EXPECT_NEAR(precision_at_one(logits, classes).false_discovery_rate(), error, 1e-12);
}

TEST(PrecisionAtOne, A37_PaddingDoesNotCount) {
  const at::Tensor logits = test::random_tensor({9, 4}, 2);
  const at::Tensor labels = (test::random_tensor({9, 4}, 3) > 0).to(torch::kLong);
  const PrecisionAtOne six = precision_at_one(logits.narrow(0, 0, 6), labels.narrow(0, 0, 6));
  const PrecisionAtOne padded = precision_at_one(logits, labels, torch::arange(9) < 6);
  EXPECT_EQ(padded.images, 6);
  EXPECT_EQ(padded.hits, six.hits);
  EXPECT_EQ(precision_at_one(logits.narrow(0, 0, 0), labels.narrow(0, 0, 0)).precision(), 0);
}

TEST(PrecisionAtOne, RefusesOtherShapes) {
  const at::Tensor logits = torch::zeros({3, 4});
  const auto message = [&](const at::Tensor& labels, const at::Tensor& valid = {}) {
    return testing::error_text([&] { precision_at_one(logits, labels, valid); });
  };
  EXPECT_NE(message(torch::zeros({3, 5})).find("[3, 4] and Float [3, 5]"), std::string::npos)
      << message(torch::zeros({3, 5}));
  EXPECT_NE(message(torch::zeros({3})), "");
  EXPECT_NE(message(torch::zeros({2}, torch::kLong)), "");
  EXPECT_NE(message(torch::zeros({3}, torch::kLong), torch::zeros({3})).find("one bool per image"), std::string::npos);
}

}  // namespace sparsight::precision_at_one_test
