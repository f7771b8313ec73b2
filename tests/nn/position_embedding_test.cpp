#include "sparsight/nn/position_embedding.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/core/error.h"

namespace sparsight::position_embedding_test {

TEST(PositionEmbedding, SameGridIsUnchangedAndPrefixIsKept) {
  const at::Tensor embedding = torch::rand({1, 2 + 6, 5});
  EXPECT_TRUE(torch::equal(resample_position_embedding(embedding, 2, {2, 3}, {2, 3}), embedding));
  const at::Tensor larger = resample_position_embedding(embedding, 2, {2, 3}, {4, 5});
  EXPECT_EQ(larger.sizes(), (std::vector<int64_t>{1, 22, 5}));
  EXPECT_TRUE(torch::equal(larger.slice(1, 0, 2), embedding.slice(1, 0, 2)));
}

TEST(PositionEmbedding, AConstantStaysConstant) {
  const at::Tensor flat = torch::full({1, 16, 3}, 0.5f, torch::kBFloat16);
  const at::Tensor resized = resample_position_embedding(flat, 0, {4, 4}, {3, 9});
  EXPECT_EQ(resized.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::allclose(resized, torch::full({1, 27, 3}, 0.5f, torch::kBFloat16)));
}

// V-MoE's: 7x7 patches at 224 pixels, 12x12 at 384.
TEST(PositionEmbedding, A10_LinearResamplingKeepsCornersAndAffineGrids) {
  const PatchGrid from{7, 7}, to{12, 12};
  const auto resampled = [&](const at::Tensor& embedding) {
    return resample_position_embedding(embedding, 1, from, to, Resampling::linear);
  };
  const auto corners = [](const at::Tensor& embedding, int64_t side) {
    const at::Tensor grid = embedding.slice(1, 1).view({side, side, -1});
    return torch::stack({grid[0][0], grid[0][side - 1], grid[side - 1][0], grid[side - 1][side - 1]});
  };
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const double tolerance = type == torch::kDouble ? 1e-12 : 1e-6;
    const at::Tensor random = torch::rand({1, 50, 6}, type), larger = resampled(random);
    EXPECT_EQ(larger.scalar_type(), type);
    EXPECT_EQ(larger.sizes(), (std::vector<int64_t>{1, 145, 6}));
    EXPECT_TRUE(torch::equal(larger.slice(1, 0, 1), random.slice(1, 0, 1)));
    EXPECT_TRUE(torch::allclose(corners(larger, 12), corners(random, 7), 0, tolerance));
    // 2 + 3 y - 5 x with y and x from 0 to 1, on either grid.
    const auto affine = [&](int64_t side) {
      const at::Tensor t = torch::linspace(0, 1, side, type);
      const at::Tensor grid = (2 + 3 * t.unsqueeze(1) - 5 * t.unsqueeze(0)).reshape({1, side * side, 1});
      return torch::cat({torch::zeros({1, 1, 1}, type), grid}, 1);
    };
    EXPECT_TRUE(torch::allclose(resampled(affine(7)), affine(12), 0, 4 * tolerance));
  }
  // Separable: the sample at i (7 - 1) / (12 - 1) of one axis. i = 4: 2.1818, between patches 2 and 3.
  const at::Tensor row = torch::cat({torch::zeros({1, 1, 1}), torch::arange(49).view({1, 49, 1}).square() * 1.f}, 1);
  const double expected = (1 - 2.0 / 11) * 4 + (2.0 / 11) * 9;  // in the first row
  EXPECT_NEAR(resampled(row)[0][1 + 4][0].item<double>(), expected, 1e-4);
}

// GMoE's 14 x 14 patches at 224 pixels become 24 x 24 at 384. Keys' cubic convolution reproduces an affine function
// away from the borders: patch i of 24 is at (i + 0.5) 14 / 24 - 0.5 of 14.
TEST(PositionEmbedding, G19_TheGridOf384PixelsFromThatOf224) {
  const auto affine = [](const at::Tensor& at_rows) {
    return (2 + 3 * at_rows.unsqueeze(1) - 5 * at_rows.unsqueeze(0)).reshape({1, -1, 1});
  };
  const at::Tensor of_class = torch::full({1, 1, 1}, 77.f);
  const at::Tensor larger =
      resample_position_embedding(torch::cat({of_class, affine(torch::arange(14.f))}, 1), 1, {14, 14}, {24, 24});
  EXPECT_EQ(larger.sizes(), (std::vector<int64_t>{1, 577, 1}));
  EXPECT_EQ(larger[0][0].item<float>(), 77.f);
  const at::Tensor expected = affine((torch::arange(24.f) + 0.5) * 14 / 24 - 0.5).view({24, 24});
  const auto inner = [](const at::Tensor& grid) { return grid.slice(0, 4, 20).slice(1, 4, 20); };
  EXPECT_TRUE(torch::allclose(inner(larger.slice(1, 1).view({24, 24})), inner(expected), 0, 1e-4));
}

TEST(PositionEmbedding, SizesThatDoNotFitAreErrors) {
  EXPECT_THROW(resample_position_embedding(torch::rand({1, 17, 3}), 0, {4, 4}, {2, 2}), Error);
  EXPECT_THROW(resample_position_embedding(torch::rand({16, 3}), 0, {4, 4}, {2, 2}), Error);
  EXPECT_THROW(resample_position_embedding(torch::rand({1, 16, 3}), 0, {4, 4}, {0, 2}), Error);
}

}  // namespace sparsight::position_embedding_test
