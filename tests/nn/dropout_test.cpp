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
  const at::Tensor factors = token_drop_path({2000, 3, 3, 5}, 0.5, RandomStream(1, "a")).view({2000, 3});
  const at::Tensor first = factors.select(1, 0);
  EXPECT_TRUE(torch::equal(factors, first.unsqueeze(1).expand({2000, 3})));
  EXPECT_TRUE(((first == 0) | (first == 2)).all().item<bool>());
  EXPECT_NEAR((first == 0).to(torch::kFloat).mean().item<double>(), 0.5, 4 * std::sqrt(0.25 / 2000));
  EXPECT_FALSE(token_drop_path({3, 3, 3, 5}, 0, RandomStream(1, "a")).defined());
}

// S33: images 3 to 6 by themselves get the same mask as among seven, and so do 5, 0 and 2.
TEST(Dropout, S33_AnImageGetsTheSameNoiseHoweverItsBatchIsSplit) {
  const at::Tensor x = torch::ones({7, 3, 5});
  const RandomStream stream(1, "a");
  const at::Tensor whole = dropout(x, 0.5, stream),
                   whole_path = token_drop_path({7, 3, 3, 5}, 0.5, stream).view({7, 3});
  for (const std::vector<int64_t>& numbers : std::vector<std::vector<int64_t>>{{3, 4, 5, 6}, {5, 0, 2}}) {
    const at::Tensor image = torch::tensor(numbers, torch::kLong), some = x.index_select(0, image);
    const TokenRows rows{image.size(0), 3, 3, 5, image};
    EXPECT_TRUE(torch::equal(dropout(some, 0.5, stream, image), whole.index_select(0, image)));
    EXPECT_TRUE(torch::equal(token_drop_path(rows, 0.5, stream).view({-1, 3}), whole_path.index_select(0, image)));
  }
  EXPECT_EQ(dropout(x.slice(0, 7), 0.5, stream).size(0), 0);
}

// Dropout in a branch's epilogue is dropout() of its rows, also where a row fills no byte of the mask.
TEST(Dropout, OfTokensHasTheFactorsOfWholeImages) {
  const RandomStream stream(1, "a");
  const at::Tensor image = torch::tensor({4, 0, 9}, torch::kLong);
  for (const int64_t width : {1, 5, 8, 24}) {
    const DropoutMask mask = token_dropout({3, 7, 7, width, image}, 0.3, stream);
    EXPECT_TRUE(torch::equal(dropout_factors(mask, width, torch::ones({1})).view({3, 7, width}),
                             dropout(torch::ones({3, 7, width}), 0.3, stream, image)));
  }
  // The first 2 of 7 tokens have the samples that they have among all.
  EXPECT_TRUE(torch::equal(dropout_factors(token_dropout({3, 7, 2, 5, image}, 0.3, stream), 5, torch::ones({1})),
                           dropout(torch::ones({3, 7, 5}), 0.3, stream, image).narrow(1, 0, 2).reshape({6, 5})));
  EXPECT_FALSE(token_dropout({3, 7, 7, 5}, 0, stream).defined());
}

}  // namespace sparsight::dropout_test
