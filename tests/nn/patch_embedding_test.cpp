#include "sparsight/nn/patch_embedding.h"

#include <gtest/gtest.h>

#include "sparsight/kernels/threads/own_threads.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::patch_embedding_test {
namespace {

PatchEmbedding double_embedding(const PatchEmbeddingOptions& options) {
  PatchEmbedding embed(options);
  initialize(*embed, 1);
  embed->to(torch::kDouble);
  return embed;
}

}  // namespace

TEST(PatchEmbedding, EqualsTheStridedConvolution) {
  PatchEmbedding embed = double_embedding({3, 4, 10});
  const auto p = embed->named_parameters();
  const at::Tensor images = test::random_tensor({2, 3, 12, 8}, 2);
  const at::Tensor expected = at::conv2d(images, p["proj.weight"], p["proj.bias"], 4).flatten(2).transpose(1, 2);
  EXPECT_TRUE(torch::allclose(embed->forward(images), expected, 1e-12, 1e-12));
}

// A residual block of torch's own operations, then 2 x 2 patches of its map: patches of 4 x 4 pixels.
TEST(PatchEmbedding, ProjectsTheMapOfItsStem) {
  PatchEmbedding embed = double_embedding({.channels = 3, .patch = 4, .width = 10, .stem = {16}});
  const auto p = embed->named_parameters();
  const at::Tensor images = test::random_tensor({2, 3, 12, 8}, 2);
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::group_norm(x, 2, p["stem.0." + name + ".weight"], p["stem.0." + name + ".bias"], 1e-5);
  };
  const at::Tensor hidden = at::relu(norm(at::conv2d(images, p["stem.0.conv1.weight"], {}, 2, 1), "norm1"));
  const at::Tensor map = at::relu(at::conv2d(images, p["stem.0.shortcut.weight"], {}, 2) +
                                  norm(at::conv2d(hidden, p["stem.0.conv2.weight"], {}, 1, 1), "norm2"));
  const at::Tensor expected = at::conv2d(map, p["proj.weight"], p["proj.bias"], 2).flatten(2).transpose(1, 2);
  EXPECT_EQ(expected.sizes(), (std::vector<int64_t>{2, 6, 10}));
  EXPECT_TRUE(torch::allclose(embed->forward(images), expected, 1e-12, 1e-12));
}

// Two blocks of one stage with batch norm: the first halves the resolution and projects its shortcut, the second adds
// its input. In training the batch norms use the statistics of the batch.
TEST(PatchEmbedding, AStemHasResnetBlocksWithBatchNorm) {
  PatchEmbedding embed = double_embedding(
      {.channels = 3, .patch = 4, .width = 10, .stem = {16}, .stem_blocks = 2, .stem_batch_norm = true});
  const auto p = embed->named_parameters();
  const at::Tensor images = test::random_tensor({2, 3, 12, 8}, 2);
  const auto norm = [&](const at::Tensor& x, const std::string& name, bool batch_statistics) {
    const std::string path = "stem." + name;
    return at::batch_norm(x, p[path + ".weight"], p[path + ".bias"], at::zeros({16}, at::kDouble),
                          at::ones({16}, at::kDouble), batch_statistics, 0.1, 1e-5, false);
  };
  const auto expected = [&](bool batch) {
    at::Tensor x = at::relu(norm(at::conv2d(images, p["stem.0.conv1.weight"], {}, 2, 1), "0.bn1", batch));
    x = norm(at::conv2d(x, p["stem.0.conv2.weight"], {}, 1, 1), "0.bn2", batch);
    const at::Tensor first =
        at::relu(x + norm(at::conv2d(images, p["stem.0.downsample.0.weight"], {}, 2), "0.downsample.1", batch));
    x = at::relu(norm(at::conv2d(first, p["stem.1.conv1.weight"], {}, 1, 1), "1.bn1", batch));
    const at::Tensor map = at::relu(first + norm(at::conv2d(x, p["stem.1.conv2.weight"], {}, 1, 1), "1.bn2", batch));
    return at::conv2d(map, p["proj.weight"], p["proj.bias"], 2).flatten(2).transpose(1, 2);
  };
  EXPECT_TRUE(torch::allclose(embed->forward(images), expected(false), 1e-12, 1e-12));
  EXPECT_TRUE(torch::allclose(embed->forward(images, /*batch_statistics=*/true), expected(true), 1e-12, 1e-12));
  EXPECT_GT(embed->named_buffers()["stem.0.bn1.running_mean"].abs().max().item<double>(), 0) << "running averages";
}

TEST(PatchEmbedding, GradientsWithAStemFollowDifferences) {
  const at::Tensor images = test::random_tensor({2, 1, 8, 4}, 2), upstream = test::random_tensor({2, 2, 3}, 3);
  for (const bool batch_norm : {false, true}) {
    PatchEmbedding embed = double_embedding(
        {.channels = 1, .patch = 4, .width = 3, .stem = {2, 2}, .stem_blocks = 2, .stem_batch_norm = batch_norm});
    std::vector<at::Tensor> inputs = embed->parameters();
    inputs.push_back(images);
    const auto loss = [&] { return (embed->forward(images, batch_norm) * upstream).sum(); };
    EXPECT_LT(test::gradient_error(loss, inputs), 1e-7) << batch_norm;
  }
}

// Without tensors it gives what the layer gives: ragged sizes, odd and even patches, a stem, each level of instructions
// and number of threads.
TEST(PatchEmbedding, CompiledItGivesTheSame) {
  for (const PatchEmbeddingOptions& options :
       {PatchEmbeddingOptions{3, 16, 40}, PatchEmbeddingOptions{3, 4, 192}, PatchEmbeddingOptions{1, 5, 17},
        PatchEmbeddingOptions{5, 1, 7}, PatchEmbeddingOptions{3, 4, 24, {8}},
        PatchEmbeddingOptions{3, 4, 24, {8}, 2, true}})
    test::at_each_level([&](const std::string& level) {
      PatchEmbedding embed(options);
      initialize(*embed, 1);
      const int64_t height = 3 * options.patch, width = 7 * options.patch;
      const at::Tensor images = test::random_tensor({3, options.channels, height, width}, 2, torch::kFloat);
      const torch::NoGradGuard no_grad;
      const at::Tensor plain = embed->forward(images);
      engine::ProgramBuilder builder(
          {.channels = options.channels, .height = height, .width = width, .mean = {}, .std = {}}, {});
      const engine::Shape tokens{.height = 3, .width = 7, .columns = options.width};
      const engine::Value y =
          embed->compile(builder, tokens, {}, std::vector<float>(static_cast<size_t>(tokens.numbers()), 1.0F));
      const engine::Program program = builder.finish(y, y);
      at::Tensor first;
      for (const int64_t threads : {1, 2, 4}) {
        cpu::OwnThreads pool(threads);
        engine::Session session;
        const engine::Answer answer =
            program.run(session, pool, {.pixels = images.const_data_ptr<float>(), .images = 3});
        const at::Tensor got = at::from_blob(const_cast<float*>(answer.features), plain.sizes(), at::kFloat).clone();
        EXPECT_TRUE(torch::allclose(got, plain + 1, 1e-5, 1e-5)) << level << ", patch " << options.patch;
        if (!first.defined()) first = got;
        EXPECT_TRUE(torch::equal(got, first)) << level << ", " << threads;
      }
    });
}

// Images of 4 x 4 pixels, maps of 2 x 2: conv1 9 * 8, conv2 9 * 8 * 8, shortcut 8, two norms of 16, proj 8 * 10 + 10.
TEST(PatchEmbedding, CountsItsStemByHand) {
  const PatchEmbedding embed(PatchEmbeddingOptions{.channels = 1, .patch = 2, .width = 10, .stem = {8}});
  const Cost cost = total(embed->cost({4, 4}));
  EXPECT_EQ(cost.parameters, 72 + 576 + 8 + 2 * 16 + 90);
  EXPECT_EQ(cost.multiply_adds, 4 * (72 + 576 + 8 + 80));
}

// The same with two blocks and batch norm: a third norm, of the shortcut, and a block of two 9 * 8 * 8 and two norms.
TEST(PatchEmbedding, CountsMoreBlocksByHand) {
  const PatchEmbedding embed(PatchEmbeddingOptions{
      .channels = 1, .patch = 2, .width = 10, .stem = {8}, .stem_blocks = 2, .stem_batch_norm = true});
  const Cost cost = total(embed->cost({4, 4}));
  EXPECT_EQ(cost.parameters, 72 + 576 + 8 + 3 * 16 + 2 * (576 + 16) + 90);
  EXPECT_EQ(cost.multiply_adds, 4 * (72 + 576 + 8 + 2 * 576 + 80));
}

}  // namespace sparsight::patch_embedding_test
