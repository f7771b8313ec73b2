#include "sparsight/models/vit.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::vit_test {
namespace {

constexpr ImageShape kImage{1, 8, 8, 3};

VitOptions tiny_options() {
  VitOptions options;
  options.width = 8;
  options.depth = 3;
  options.heads = 2;
  return options;
}

std::shared_ptr<Vit> tiny_vit(const VitOptions& options, const std::vector<int64_t>& moe_blocks = {}) {
  auto vit = std::make_shared<Vit>(options, ModelContext{kImage, default_moe_spec(moe_blocks)});
  initialize(*vit, 1);
  return vit;
}

// What DINOv2, DeiT-III and CLIP add to ViT.
VitOptions extended_options() {
  VitOptions options = tiny_options();
  options.layer_scale = 0.3, options.reg_tokens = 2, options.pre_norm = true, options.norm_eps = 1e-5;
  return options;
}

at::Tensor images(int64_t count) { return test::random_tensor({count, 1, 8, 8}, 2, torch::kFloat); }

}  // namespace

TEST(Vit, PutsMoeLayersInTheChosenBlocksUnderTheirNames) {
  const auto vit = tiny_vit(tiny_options(), {-1, 0});
  const auto parameters = vit->named_parameters();
  for (const std::string block : {"0", "2"}) {
    for (const std::string name : {"router.weight", "experts.w1", "experts.b1", "experts.w2", "experts.b2"})
      EXPECT_TRUE(parameters.contains("blocks." + block + ".mlp." + name)) << name;
    EXPECT_FALSE(parameters.contains("blocks." + block + ".mlp.fc1.weight"));
  }
  EXPECT_TRUE(parameters.contains("blocks.1.mlp.fc1.weight"));
  EXPECT_EQ(parameters["blocks.0.mlp.experts.w1"].sizes(), (std::vector<int64_t>{8, 8, 32}));  // E, D, 4 D

  const ModelOutput out = vit->forward({images(2), ForwardMode::training(), {1, 0}});
  ASSERT_EQ(out.routings.size(), 2u);
  EXPECT_EQ(out.routings[0].layer, "blocks.0.mlp");
  EXPECT_EQ(out.routings[1].layer, "blocks.2.mlp");
  EXPECT_EQ(out.losses.size(), 4u);
  const TokenLayout& layout = out.routings[0].layout;  // a class token and 2 x 2 patches
  EXPECT_EQ(layout.images, 2);
  EXPECT_EQ(layout.per_image, 5);
  EXPECT_EQ(layout.prefix, 1);
  EXPECT_EQ(layout.grid_height, 2);
  EXPECT_EQ(layout.grid_width, 2);
}

TEST(Vit, RoutesThePatchesOfAConvolutionalStem) {
  VitOptions options = tiny_options();
  options.stem = {8, 16};
  const auto vit = tiny_vit(options, {1});
  EXPECT_EQ(vit->named_parameters()["patch_embed.stem.1.conv2.weight"].sizes(), (std::vector<int64_t>{16, 16, 3, 3}));
  EXPECT_EQ(vit->named_parameters()["patch_embed.proj.weight"].sizes(), (std::vector<int64_t>{8, 16, 1, 1}));
  const ModelOutput out = vit->forward({images(2), ForwardMode::training(), {1, 0}});
  EXPECT_EQ(out.routings.at(0).layout.grid_height, 2);
  options.stem.push_back(16);  // eight pixels a side, with patches of four
  EXPECT_NE(testing::error_text<UsageError>([&] { tiny_vit(options); }).find("not a multiple of 2^3"),
            std::string::npos);
}

TEST(Vit, RegistersFollowTheClassTokenAndMayLackPositions) {
  VitOptions options = extended_options();
  for (const auto& [pool, no_embed_class, prefix] :
       {std::tuple{"class", false, 3}, {"class", true, 3}, {"mean", false, 2}, {"mean", true, 2}}) {
    options.pool = pool, options.no_embed_class = no_embed_class;
    const auto vit = tiny_vit(options, {1});
    const auto parameters = vit->named_parameters();
    EXPECT_EQ(parameters["reg_token"].sizes(), (std::vector<int64_t>{1, 2, 8}));
    EXPECT_EQ(parameters["pos_embed"].size(1), 4 + (no_embed_class ? 0 : prefix)) << pool;
    EXPECT_FALSE(parameters.contains("patch_embed.proj.bias"));  // norm_pre has one
    const ModelOutput out = vit->forward({.images = images(2), .taps = {"blocks.0"}});
    EXPECT_EQ(out.taps.at("blocks.0").size(1), 4 + prefix);
    EXPECT_EQ(out.routings.at(0).layout.prefix, prefix);
    EXPECT_EQ(out.routings.at(0).layout.per_image, 4 + prefix);
  }
}

// Heads read the 4 patch tokens: with weights of 0 in all blocks, tokens stay what they were embedded as.
TEST(Vit, PoolingLeavesRegistersOut) {
  for (const std::string pool : {"mean", "map"}) {
    VitOptions options = tiny_options();
    options.reg_tokens = 2, options.pool = pool;
    const auto vit = tiny_vit(options);
    const at::Tensor before = vit->forward({images(2)}).logits;
    const torch::NoGradGuard no_grad;
    for (const auto& item : vit->named_parameters())
      if (item.key().starts_with("blocks.")) at::Tensor(item.value()).zero_();
    const at::Tensor without = vit->forward({images(2)}).logits;
    at::Tensor registers = vit->named_parameters()["reg_token"];
    registers.copy_(test::random_tensor(registers.sizes().vec(), 4, torch::kFloat));
    EXPECT_TRUE(torch::equal(vit->forward({images(2)}).logits, without)) << pool;
    EXPECT_FALSE(torch::equal(before, without)) << pool;
  }
}

// 2 images of 2 x 2 patches of width 8, and a class token where there is one.
TEST(Vit, GivesTheResultsOfItsModules) {
  VitOptions options = tiny_options();
  const auto shape = [](int64_t tokens) { return std::vector<int64_t>{2, tokens, 8}; };
  for (const std::string pool : {"class", "mean"}) {
    options.pool = pool;
    const auto vit = tiny_vit(options, {1});
    const int64_t tokens = pool == "class" ? 5 : 4;
    EXPECT_EQ(vit->tap_names(), (std::vector<std::string>{"patch_embed", "blocks.0", "blocks.1", "blocks.2",
                                                          pool == "class" ? "norm" : "fc_norm"}));
    std::vector<std::string> taps = vit->tap_names();
    for (const std::string block : {"blocks.0", "blocks.2"})  // block 1 has experts, and a router that reads norm2 too
      taps.insert(taps.end(), {block + ".norm1", block + ".norm2"});
    const ModelOutput out = vit->forward({.images = images(2), .taps = taps});
    EXPECT_EQ(out.features.sizes(), (std::vector<int64_t>{2, 8}));
    EXPECT_EQ(out.taps.at("patch_embed").sizes(), shape(4));
    for (const std::string name : {"blocks.0", "blocks.1", "blocks.2", "blocks.0.norm1", "blocks.2.norm2"})
      EXPECT_EQ(out.taps.at(name).sizes(), shape(tokens)) << name;
    const at::Tensor normed = at::layer_norm(out.taps.at("blocks.1"), {8}, {}, {}, options.norm_eps);
    EXPECT_TRUE(test::near(out.taps.at("blocks.2.norm1"), normed, 1e-5));  // new norms have weights of 1
    if (pool == "class") {
      EXPECT_EQ(out.taps.at("norm").sizes(), shape(5));
      EXPECT_TRUE(torch::equal(out.taps.at("norm").select(1, 0), out.features));
    } else {
      EXPECT_TRUE(torch::equal(out.taps.at("fc_norm"), out.features));
    }
  }
}

TEST(Vit, LayersGetDifferentNoise) {
  const auto vit = tiny_vit(tiny_options(), {0, 1});
  const ModelOutput out = vit->forward({images(2), ForwardMode::training(), {1, 0}});
  const auto noise = [&](size_t i) { return out.routings[i].noisy_logits - out.routings[i].clean_logits; };
  EXPECT_GT((noise(0) - noise(1)).abs().max().item<double>(), 0.01);
}

TEST(Vit, WholeModelGradientAgreesWithCentralDifferences) {
  VitOptions options = tiny_options();
  options.depth = 2;
  options.dropout = 0.1;
  options.drop_path = 0.1;
  auto vit = tiny_vit(options, {1});
  vit->to(torch::kDouble);
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& p : vit->parameters()) p.mul_(5);
  }
  at::Tensor x = images(2).to(torch::kDouble);
  const at::Tensor labels = torch::tensor({0, 2}, torch::kLong);
  const auto loss = [&] {
    const ModelOutput out = vit->forward({x, ForwardMode::training(), {1, 4}});
    at::Tensor total = at::cross_entropy_loss(out.logits, labels);
    for (const NamedLoss& aux : out.losses) total = total + aux.value;
    return total;
  };
  EXPECT_LT(test::gradient_error(loss, {x}, 1e-6), 1e-6);
}

TEST(Vit, GradientsOfScalesRegistersAndFirstNormAgreeWithCentralDifferences) {
  for (const bool no_embed_class : {false, true}) {
    VitOptions options = extended_options();
    options.depth = 2, options.dropout = 0.1, options.drop_path = 0.1, options.no_embed_class = no_embed_class;
    auto vit = tiny_vit(options, {1});
    vit->to(torch::kDouble);
    const at::Tensor x = images(2).to(torch::kDouble), labels = torch::tensor({0, 2}, torch::kLong);
    const auto loss = [&] {
      return at::cross_entropy_loss(vit->forward({x, ForwardMode::training(), {1, 4}}).logits, labels);
    };
    std::vector<at::Tensor> inputs;
    for (const auto& item : vit->named_parameters())
      for (const char* part : {"gamma", "reg_token", "norm_pre", "cls_token", "pos_embed"})
        if (item.key().find(part) != std::string::npos) inputs.push_back(item.value());
    ASSERT_EQ(inputs.size(), 9u);  // two scales in each of two blocks, and norm_pre has weight and bias
    const torch::NoGradGuard no_grad;
    for (at::Tensor& p : vit->parameters()) p.mul_(5);
    for (const auto& item : vit->named_parameters())  // as drawn, they are too short for differences of 1e-6
      if (item.key().ends_with("_token"))
        item.value().copy_(test::random_tensor(item.value().sizes(), 5, torch::kDouble));
    const torch::AutoGradMode grad(true);
    EXPECT_LT(test::gradient_error(loss, inputs, 1e-6), 1e-6) << no_embed_class;
  }
}

TEST(Vit, DropoutAndDropPathFollowTheStepAndStopInEvaluation) {
  VitOptions options = tiny_options();
  options.dropout = 0.2;
  options.drop_path = 0.5;
  const auto vit = tiny_vit(options);
  const at::Tensor x = images(4);
  const auto logits = [&](uint64_t step, const ForwardMode& mode = ForwardMode::training()) {
    return vit->forward({x, mode, {1, step}}).logits;
  };
  EXPECT_TRUE(torch::equal(logits(0), logits(0)));
  EXPECT_FALSE(torch::equal(logits(0), logits(1)));
  EXPECT_TRUE(torch::equal(logits(0, {}), logits(1, {})));
}

TEST(Vit, SizesAreTimms) {
  // Parameters of timm's vit_tiny_patch16_224, vit_small_patch16_224, vit_base_patch16_224 with 1000 classes.
  const std::vector<std::pair<std::string, int64_t>> known{{"tiny", 5717416}, {"small", 22050664}, {"base", 86567656}};
  for (const auto& [size, expected] : known) {
    VitOptions options;
    options.size = size;
    options.patch = 16;
    const Vit vit(options, {{3, 224, 224, 1000}, default_moe_spec()});
    int64_t count = 0;
    for (const at::Tensor& p : vit.parameters()) count += p.numel();
    EXPECT_EQ(count, expected) << size;
  }
}

// With a weight of 0 the head gets tanh of the bias for any image: logits are row sums times tanh(0.5) = 0.46212.
TEST(Vit, PreLogitsAreALinearLayerAndATanhBeforeTheHead) {
  VitOptions options = tiny_options();
  options.pre_logits = true;
  const auto vit = tiny_vit(options);
  auto parameters = vit->named_parameters();
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(parameters["pre_logits.fc.weight"].sizes(), (std::vector<int64_t>{8, 8}));
  parameters["pre_logits.fc.weight"].zero_();
  parameters["pre_logits.fc.bias"].fill_(0.5);
  const at::Tensor expected = parameters["head.weight"].sum(1) * 0.46211716 + parameters["head.bias"];
  EXPECT_TRUE(torch::allclose(vit->forward({images(2)}).logits, expected.expand({2, 3})));
}

TEST(Vit, RefusesWhatDoesNotFit) {
  VitOptions patch = tiny_options(), heads = tiny_options();
  patch.patch = 3;
  heads.heads = 3;
  EXPECT_THROW(tiny_vit(patch), UsageError);
  EXPECT_THROW(tiny_vit(heads), UsageError);
  EXPECT_THROW(tiny_vit(tiny_options(), {3}), UsageError);
}

TEST(Vit, RunsUnderAutocastWithRoutersInFp32) {
  const auto vit = tiny_vit(tiny_options(), {-1});
  const at::Tensor x = images(4), full = vit->forward({x}).logits;
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const ModelOutput low = vit->forward({x});
  low.logits.sum().backward();
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(low.logits.scalar_type(), at::kFloat);
  EXPECT_EQ(low.routings[0].gate.scalar_type(), at::kFloat);
  EXPECT_TRUE(torch::allclose(low.logits, full, 0, 0.02 * std::max(1.0, full.abs().max().item<double>())));
  for (const auto& p : vit->named_parameters()) EXPECT_EQ(p.value().grad().scalar_type(), at::kFloat) << p.key();
}

// Every gradient of dense and routed blocks with dropout, through the kernels of ops/ in fp32.
TEST(Vit, TrainingHasTheSameBitsForAnyNumberOfThreads) {
  VitOptions options = tiny_options();
  options.width = 48, options.heads = 3, options.dropout = 0.1, options.drop_path = 0.2, options.layer_scale = 0.5;
  for (const std::vector<int64_t>& blocks : {std::vector<int64_t>{}, {1}}) {
    std::vector<at::Tensor> one;
    for (const int count : {1, 2, 4}) {
      const test::ThreadCount threads(count);
      const auto vit = tiny_vit(options, blocks);
      const ModelOutput out = vit->forward({images(70), ForwardMode::training(), {1, 0}});  // 350 tokens
      at::Tensor loss = at::cross_entropy_loss(out.logits + 1, torch::arange(70) % 3);
      for (const NamedLoss& named : out.losses) loss = loss + named.weight * named.value;
      loss.backward();
      std::vector<at::Tensor> seen{out.logits.detach()};
      for (const auto& parameter : vit->named_parameters())
        if (parameter.value().grad().defined()) seen.push_back(parameter.value().grad().clone());
      if (count == 1) one = seen;
      ASSERT_EQ(seen.size(), one.size());
      for (size_t i = 0; i < seen.size(); ++i)
        EXPECT_TRUE(torch::equal(seen[i], one[i])) << count << " threads, " << blocks.size() << " MoE layers, " << i;
    }
  }
}

}  // namespace sparsight::vit_test
