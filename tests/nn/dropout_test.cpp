#include "sparsight/nn/dropout.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace sparsight::dropout_test {

TEST(Dropout, KeepsTheMeanAndTheStreamsPattern) {
  const at::Tensor x = torch::ones({300, 1000});
  const at::Tensor a = dropout(x, 0.25, RandomStream(1, "a")), again = dropout(x, 0.25, RandomStream(1, "a"));
  EXPECT_TRUE(torch::equal(a, again));
  EXPECT_FALSE(torch::equal(a, dropout(x, 0.25, RandomStream(1, "b"))));
  EXPECT_NEAR(a.mean().item<double>(), 1, 4 * std::sqrt(0.25 / 0.75 / 300000));
  EXPECT_NEAR((a == 0).to(torch::kFloat).mean().item<double>(), 0.25, 4 * std::sqrt(0.25 * 0.75 / 300000));
}

TEST(Dropout, OfRateZeroIsTheIdentity) {
  const at::Tensor x = torch::ones({3});
  EXPECT_TRUE(dropout(x, 0, RandomStream(1, "a")).is_same(x));
}

TEST(DropPath, DropsWholeImages) {
  const at::Tensor y = drop_path(torch::ones({2000, 3, 5}), 0.5, RandomStream(1, "a"));
  const at::Tensor sums = y.sum({1, 2});
  EXPECT_TRUE(((sums == 0) | (sums == 30)).all().item<bool>());  // 15 ones, scaled by 2
  EXPECT_NEAR((sums == 0).to(torch::kFloat).mean().item<double>(), 0.5, 4 * std::sqrt(0.25 / 2000));
}

// S33: images 3 to 6 by themselves get the same mask as among seven, and so do 5, 0 and 2.
TEST(Dropout, S33_AnImageGetsTheSameNoiseHoweverItsBatchIsSplit) {
  const at::Tensor x = torch::ones({7, 3, 5});
  const RandomStream stream(1, "a");
  const at::Tensor whole = dropout(x, 0.5, stream), whole_path = drop_path(x, 0.5, stream);
  for (const std::vector<int64_t>& numbers : std::vector<std::vector<int64_t>>{{3, 4, 5, 6}, {5, 0, 2}}) {
    const at::Tensor image = torch::tensor(numbers, torch::kLong), some = x.index_select(0, image);
    EXPECT_TRUE(torch::equal(dropout(some, 0.5, stream, image), whole.index_select(0, image)));
    EXPECT_TRUE(torch::equal(drop_path(some, 0.5, stream, image), whole_path.index_select(0, image)));
  }
  EXPECT_EQ(dropout(x.slice(0, 7), 0.5, stream).size(0), 0);
}

}  // namespace sparsight::dropout_test
