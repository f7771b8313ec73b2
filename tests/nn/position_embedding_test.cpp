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

TEST(PositionEmbedding, SizesThatDoNotFitAreErrors) {
  EXPECT_THROW(resample_position_embedding(torch::rand({1, 17, 3}), 0, {4, 4}, {2, 2}), Error);
  EXPECT_THROW(resample_position_embedding(torch::rand({16, 3}), 0, {4, 4}, {2, 2}), Error);
  EXPECT_THROW(resample_position_embedding(torch::rand({1, 16, 3}), 0, {4, 4}, {0, 2}), Error);
}

}  // namespace sparsight::position_embedding_test
