#include "sparsight/nn/patch_embedding.h"

#include <gtest/gtest.h>

#include "tests/support/random_tensor.h"

namespace sparsight::patch_embedding_test {

TEST(PatchEmbedding, EqualsTheStridedConvolution) {
  PatchEmbedding embed(PatchEmbeddingOptions{3, 4, 10});
  initialize(*embed, 1);
  embed->to(torch::kDouble);
  const auto p = embed->named_parameters();
  const at::Tensor images = test::random_tensor({2, 3, 12, 8}, 2);
  const at::Tensor expected = at::conv2d(images, p["proj.weight"], p["proj.bias"], 4).flatten(2).transpose(1, 2);
  EXPECT_TRUE(torch::allclose(embed->forward(images), expected, 1e-12, 1e-12));
}

}  // namespace sparsight::patch_embedding_test
