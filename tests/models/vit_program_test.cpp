// Vision transformers as programs against the same models with tensors.
#include <gtest/gtest.h>

#include "sparsight/models/vit.h"
#include "sparsight/nn/init.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/near.h"
#include "tests/support/program_answers.h"
#include "tests/support/thread_count.h"

namespace sparsight::vit_program_test {
namespace {

MoeSpec make_spec(bool routed) {
  if (!routed) return {};
  return read_moe_spec({{"moe", {{"blocks", {1}}, {"experts", 4}, {"hidden", 24}}},
                        {"experts", {{"name", "mlp"}}},
                        {"capacity", Json::object()},
                        {"losses", Json::object()},
                        {"router", {{"name", "softmax_topk"}, {"k", 2}}}});
}

std::shared_ptr<Vit> make_vit(int64_t width, int64_t heads, int64_t side, bool routed, bool qkv_bias = true,
                              const std::string& pool = "class", VitOptions options = {}) {
  options.pool = pool;
  options.width = width, options.depth = 3, options.heads = heads, options.patch = 4, options.qkv_bias = qkv_bias;
  auto model = std::make_shared<Vit>(options, ModelContext{{3, side, side, 10}, make_spec(routed)});
  initialize(*model, 3);
  const torch::NoGradGuard no_grad;
  uint64_t seed = 1;
  for (at::Tensor& parameter : model->parameters())  // of order 1, so that every term counts
    parameter.add_(test::random_tensor(parameter.sizes(), seed++, torch::kFloat) *
                   (parameter.dim() > 1 ? 1 / std::sqrt(static_cast<double>(parameter.size(-1))) : 0.3));
  return model;
}

at::Tensor compute_logits(Vit& model, const at::Tensor& images) {
  return test::program_output(model, {3, images.size(2), images.size(3), 10}, images).logits;
}

}  // namespace

TEST(VitProgram, HasTheLogitsOfItsLayers) {
  test::at_each_level([](const std::string& level) {
    for (const auto& [width, heads, side, routed, bias] : {std::tuple{24, 4, 8, false, true},
                                                           {30, 3, 20, false, false},
                                                           {400, 5, 12, false, true},
                                                           {24, 2, 60, true, true}}) {
      const auto model = make_vit(width, heads, side, routed, bias);
      for (const int64_t images : {1, 2, 3, 9}) {
        const at::Tensor x = test::random_tensor({images, 3, side, side}, 5, torch::kFloat).abs();
        const at::Tensor packed = compute_logits(*model, x), layers = model->forward({.images = x}).logits;
        EXPECT_TRUE(test::near(packed, layers, 1e-4)) << level << " width " << width << ", " << images << " images";
        EXPECT_FALSE(torch::equal(packed, torch::zeros_like(packed)));
      }
    }
  });
}

// Layer scales are part of packed weights; registers and a first norm stand before packed blocks.
TEST(VitProgram, HasTheLogitsOfItsLayersWithScalesAndRegisters) {
  for (const bool routed : {false, true})
    for (const std::string pool : {"class", "mean"})
      for (const bool no_embed_class : {false, true}) {
        VitOptions options;
        options.layer_scale = 0.7, options.reg_tokens = 3, options.pre_norm = true, options.norm_eps = 1e-3;
        options.no_embed_class = no_embed_class;
        const auto model = make_vit(24, 4, 12, routed, true, pool, options);
        const at::Tensor x = test::random_tensor({3, 3, 12, 12}, 5, torch::kFloat).abs();
        EXPECT_TRUE(test::near(compute_logits(*model, x), model->forward({.images = x}).logits, 1e-4))
            << routed << pool << no_embed_class;
      }
}

// Few images are split by rows or, with the larger weights, by columns.
TEST(VitProgram, HasTheSameBitsForAnyNumberOfThreadsAndImages) {
  for (const int64_t width : {60, 400}) {
    SCOPED_TRACE(width);
    const auto model = make_vit(width, 5, 28, false);
    const at::Tensor x = test::random_tensor({7, 3, 28, 28}, 5, torch::kFloat).abs();
    at::Tensor alone, together;
    {
      const test::ThreadCount one(1);
      together = compute_logits(*model, x);
    }
    for (const int threads : {1, 2, 4}) {
      const test::ThreadCount some(threads);
      EXPECT_TRUE(torch::equal(compute_logits(*model, x), together)) << threads;
      EXPECT_TRUE(test::near(compute_logits(*model, x.narrow(0, 2, 1)), together.narrow(0, 2, 1), 1e-5)) << threads;
      const at::Tensor single = compute_logits(*model, x.narrow(0, 2, 1));
      if (!alone.defined()) alone = single;
      EXPECT_TRUE(torch::equal(single, alone)) << threads;
    }
  }
}

// bf16 keeps 8 bits of a weight, int8 7 bits of the largest of an output.
TEST(VitProgram, FewerBitsPerWeightChangeLogitsALittle) {
  const auto model = make_vit(64, 4, 16, false);
  const at::Tensor x = test::random_tensor({4, 3, 16, 16}, 5, torch::kFloat).abs(), exact = compute_logits(*model, x);
  const double scale = exact.abs().max().item<double>();
  for (const auto& [type, share] : {std::pair{WeightType::bf16, 0.02}, {WeightType::int8, 0.05}}) {
    const at::Tensor packed = test::program_output(*model, {3, 16, 16, 10}, x, {.type = type}).logits;
    EXPECT_TRUE(test::near(packed, exact, share * scale));
    EXPECT_FALSE(torch::equal(packed, exact));
  }
}

// Weights that change later change no program.
TEST(VitProgram, IsAValueOfItsOwn) {
  const auto model = make_vit(24, 4, 8, true);
  const at::Tensor x = test::random_tensor({2, 3, 8, 8}, 5, torch::kFloat).abs();
  const torch::NoGradGuard no_grad;
  const ProgramModel program(model->compile(), {3, 8, 8, 10});
  const at::Tensor before = program.forward({.images = x}).logits;
  for (at::Tensor& parameter : model->parameters()) parameter.mul_(2);
  EXPECT_TRUE(torch::equal(program.forward({.images = x}).logits, before));
  EXPECT_FALSE(test::near(compute_logits(*model, x), before, 1e-3));
}

// With few images experts stay in the model's memory, as they are.
TEST(VitProgram, HasTheSameBitsWithExpertsThatAreNotPacked) {
  const auto model = make_vit(24, 4, 8, true);
  const at::Tensor x = test::random_tensor({2, 3, 8, 8}, 5, torch::kFloat).abs();
  const at::Tensor plain = test::program_output(*model, {3, 8, 8, 10}, x, {.packs_experts = false}).logits;
  EXPECT_TRUE(test::near(plain, compute_logits(*model, x), 1e-6));
}

}  // namespace sparsight::vit_program_test
