// What holds of whole Mobile V-MoE models (Daxberger et al. 2023), on small ones: sections 3 and 9 of the
// specification.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/models/upcycle.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/program.h"
#include "tests/support/random_tensor.h"

namespace sparsight::mobile_vmoe_test {
namespace {

using Settings = std::vector<std::string>;

constexpr ImageShape kShape{1, 8, 8, 5};
constexpr int64_t kTokens = 5;  // a class token and 2 x 2 patches

std::shared_ptr<ImageModel> vit(const Settings& settings, uint64_t seed = 1) {
  Config config = Config::from_text("", "");
  for (const char* setting : {"model.name=vit", "model.width=8", "model.depth=4", "model.heads=2", "model.patch=4"})
    config.set(setting);
  for (const std::string& setting : settings) config.set(setting);
  auto model = make_model(resolve(config, config_sections()), kShape);
  initialize(*model, seed);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : model->parameters()) p.add_(test::random_tensor(p.sizes(), seed + 6, torch::kFloat) * 0.2);
  return model;
}

// Four experts in the last two blocks, and one router of images.
Settings routed(const Settings& more = {}) {
  Settings all{"moe.blocks=[-2,-1]", "moe.experts=4", "router.name=per_image"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

at::Tensor images(int64_t count) { return test::random_tensor({count, 1, 8, 8}, 3, torch::kFloat); }

// Every expert becomes the MLP of the dense model in its place; everything else is taken as it is.
std::shared_ptr<ImageModel> with_dense_copies(const ImageModel& dense, const Settings& settings) {
  auto model = vit(settings, 4);
  LoadOptions options;
  options.derive = upcycle_dense_mlps(*model, {});
  NamedTensors tensors;
  for (const auto& [name, tensor] : named_weights(dense)) tensors.emplace_back(name, tensor.detach().clone());
  load_weights(*model, tensors, options);
  return model;
}

void expect_dense(const Settings& settings) {
  const torch::NoGradGuard no_grad;
  const auto dense = vit({});
  const at::Tensor wanted = dense->forward({images(6)}).logits;
  EXPECT_TRUE(test::near(with_dense_copies(*dense, settings)->forward({images(6)}).logits, wanted, 1e-5));
}

ModelOutput trained_pass(ImageModel& model, const at::Tensor& pixels, int64_t experts = 4) {
  ModelInput input{pixels, ForwardMode::training(), {1, 2}};
  input.info.target = torch::eye(experts, pixels.options()).index_select(0, at::arange(pixels.size(0)) % experts);
  return model.forward(input);
}

}  // namespace

TEST(MobileVmoe, M6_OneExpertIsTheDenseModel) { expect_dense(routed({"moe.experts=1"})); }

TEST(MobileVmoe, M7_AllExpertsWithCopiesAreTheDenseModel) {
  for (const char* scope : {"model", "layer"}) expect_dense(routed({"router.k=4", cat("router.scope=", scope)}));
  expect_dense({"moe.blocks=[-2,-1]", "moe.experts=4", "router.name=softmax_topk", "router.k=4"});
}

// A single gate of 1, whatever the router says.
TEST(MobileVmoe, M8_EqualExpertsWithRenormalisedGatesAreTheDenseModel) {
  expect_dense(routed({"router.renormalize=true"}));
  expect_dense(routed({"router.renormalize=true", "router.k=2", "router.input=mean_patches", "router.norm=affine"}));
  expect_dense(
      {"moe.blocks=[-2,-1]", "moe.experts=4", "router.name=softmax_topk", "router.k=1", "router.renormalize=true"});
  // Without: the gate scales the experts' output.
  const torch::NoGradGuard no_grad;
  const auto dense = vit({});
  EXPECT_GT((with_dense_copies(*dense, routed())->forward({images(6)}).logits - dense->forward({images(6)}).logits)
                .abs()
                .max()
                .item<double>(),
            0.01);
}

// The router of L = 1 .. 8 MoE layers sees the class token after layer 12 - L, and nothing later.
TEST(MobileVmoe, M11_TheRouterIsAfterTheDenseLayers) {
  const torch::NoGradGuard no_grad;
  for (int64_t layers = 1; layers <= 8; ++layers) {
    std::string blocks;
    for (int64_t i = 12 - layers; i < 12; ++i) blocks += cat(blocks.empty() ? "" : ",", i);
    const auto model = vit(routed({"model.depth=12", "moe.blocks=[" + blocks + "]"}));
    const std::string before = cat("blocks.", 11 - layers);
    const ModelOutput out = model->forward({.images = images(3), .taps = {before}});
    ASSERT_EQ(out.routings.size(), 1u);
    const at::Tensor seen = at::layer_norm(out.taps.at(before).select(1, 0), {8}, {}, {}, 1e-6);
    const at::Tensor logits = seen.matmul(model->named_parameters()["router.weight"].t());
    EXPECT_TRUE(test::near(out.routings[0].clean_logits.view({3, kTokens, 4}).select(1, 0), logits, 1e-5)) << layers;
  }
}

TEST(MobileVmoe, M12_AnImagesOutputDoesNotDependOnTheOthers) {
  const torch::NoGradGuard no_grad;
  const auto model = vit(routed({"losses.superclass=0.3"}));
  const at::Tensor batch = images(7);
  for (const ForwardMode& mode : {ForwardMode::evaluation(), ForwardMode::training()}) {
    const at::Tensor together = model->forward({batch, mode, {1, 2}}).logits;
    for (int64_t i = 0; i < 7; ++i) {
      ModelInput alone{batch.narrow(0, i, 1), mode, {1, 2}};
      alone.info.image = torch::tensor({i}, torch::kLong);
      EXPECT_TRUE(test::near(model->forward(alone).logits, together.narrow(0, i, 1), 1e-5)) << i;
    }
  }
}

// router_input, router_norm, router_sharing and gate_norm of the specification, saved and read again.
TEST(MobileVmoe, M13_SettingsOfTheRouterSurviveACheckpoint) {
  const torch::NoGradGuard no_grad;
  const testing::TemporaryFolder folder;
  std::vector<at::Tensor> all;
  for (const Settings& settings : {Settings{},
                                   {"router.input=mean_all"},
                                   {"router.input=mean_patches"},
                                   {"router.norm=none"},
                                   {"router.norm=affine"},
                                   {"router.scope=layer"},
                                   {"router.renormalize=true"},
                                   {"router.k=3"}}) {
    const auto model = vit(routed(settings));
    const at::Tensor logits = model->forward({images(6)}).logits;
    write_checkpoint(folder.path("c"), {named_weights(*model), {}, model->definition()->config, Json::object()});
    const Checkpoint saved = read_checkpoint(folder.path("c"));
    EXPECT_EQ(saved.config, model->definition()->config);
    const auto loaded = make_model(saved.config, kShape);
    LoadOptions strict;
    strict.strict = true;
    load_weights(*loaded, saved.weights, strict);
    EXPECT_TRUE(torch::equal(loaded->forward({images(6)}).logits, logits));
    for (const at::Tensor& other : all) EXPECT_FALSE(torch::equal(other, logits));  // each setting does something
    all.push_back(logits);
  }
}

TEST(MobileVmoe, M14_ThePerTokenVariantRoutesAllTokensInEachLayer) {
  const torch::NoGradGuard no_grad;
  const Settings settings{"moe.blocks=[-2,-1]", "moe.experts=4", "router.name=softmax_topk", "router.k=1"};
  const auto model = vit(settings);
  const ModelOutput evaluated = model->forward({images(6)}), noisy = trained_pass(*model, images(6));
  ASSERT_EQ(evaluated.routings.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Routing &quiet = evaluated.routings[i], &loud = noisy.routings[i];
    EXPECT_EQ(quiet.layer, cat("blocks.", i + 2, ".mlp"));
    EXPECT_TRUE(torch::equal(quiet.token, at::arange(6 * kTokens, at::kLong)));  // the class token too
    EXPECT_TRUE(quiet.kept.all().item<bool>());
    EXPECT_TRUE(loud.kept.all().item<bool>());  // dropless
    EXPECT_FALSE(quiet.noise_scale.defined());
    EXPECT_NEAR(loud.noise_scale.item<double>(), 1.0 / 4, 1e-7);
  }
}

// 50 tokens that all want one of ten experts: 1.05 * 50 / 10 = 5.25, rounded up to 6 and to a multiple of 4: 8 slots.
TEST(MobileVmoe, M14_BeyondTheCapacityTheMoeOutputIsZero) {
  const torch::NoGradGuard no_grad;
  Config config = Config::from_text("", "");
  for (const char* setting : {"moe.experts=10", "router.name=softmax_topk", "router.k=1", "router.noise=0",
                              "capacity.factor=1.05", "capacity.multiple=4", "losses.vmoe_load=0"})
    config.set(setting);
  MoeLayer layer(read_moe_spec(resolve(config, config_sections())), {"moe", 8, 16});
  initialize(layer, 1);
  const at::Tensor token = test::random_tensor({1, 8}, 3, torch::kFloat);
  MoeInput input{token.expand({50, 8}).contiguous(), {1, 50, 1, 7, 7}, ForwardMode::training()};
  const MoeOutput out = layer.forward(input);
  EXPECT_EQ(out.routing.kept.sum().item<int64_t>(), 8);
  EXPECT_GT(out.tokens.narrow(0, 0, 8).abs().min().item<double>(), 0);
  EXPECT_EQ(out.tokens.narrow(0, 8, 42).abs().max().item<double>(), 0);
}

// Through the shared router of a whole model: its gates, its weights, experts and backbone, in float64.
TEST(MobileVmoe, M15_GradientsOfAWholeModelAreNumericOnes) {
  const auto model = vit(routed({"model.width=4", "model.depth=3", "model.mlp_ratio=2", "router.k=2",
                                 "router.norm=affine", "losses.superclass=0.3"}));
  model->to(torch::kDouble);
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& p : model->parameters()) p.mul_(2);
  }
  const at::Tensor pixels = images(3).to(torch::kDouble), labels = torch::tensor({0, 4, 2}, torch::kLong);
  const auto loss = [&] {
    const ModelOutput out = trained_pass(*model, pixels);
    at::Tensor total = at::cross_entropy_loss(out.logits, labels);
    for (const NamedLoss& guided : out.losses) total = total + guided.weight * guided.value;
    return total;
  };
  const ModelOutput out = trained_pass(*model, pixels);
  ASSERT_EQ(out.routings.size(), 1u);
  // No choice changes within a step: the second and the third expert of each image are apart.
  const at::Tensor sorted = std::get<0>(out.routings[0].clean_logits.sort(1, /*descending=*/true));
  EXPECT_GT((sorted.select(1, 1) - sorted.select(1, 2)).min().item<double>(), 1e-3);
  std::vector<at::Tensor> weights = model->parameters();
  weights.push_back(pixels);
  EXPECT_LT(test::gradient_error(loss, weights, 1e-6), 1e-6);
  for (const char* name : {"router.weight", "router.norm_weight", "blocks.1.mlp.experts.w1", "blocks.2.mlp.experts.w2",
                           "blocks.0.attn.qkv.weight", "patch_embed.proj.weight"})
    EXPECT_GT(model->named_parameters()[name].grad().abs().max().item<double>(), 1e-3) << name;
}

// L = L_C + lambda L_g: without a weight there is no second term at all, and the guided loss changes no output.
TEST(MobileVmoe, M16_WithoutAWeightTheLossIsThatOfTheTask) {
  const auto guided = vit(routed()), alone = vit(routed({"losses.superclass=0"}));
  const ModelOutput with = trained_pass(*guided, images(5)), without = trained_pass(*alone, images(5));
  EXPECT_TRUE(torch::equal(with.logits, without.logits));
  EXPECT_TRUE(without.losses.empty());
  ASSERT_EQ(with.losses.size(), 1u);
  EXPECT_EQ(with.losses[0].name, "superclass");
  EXPECT_EQ(with.losses[0].weight, 0.3);
  const ModelOutput unguided = guided->forward({images(5), ForwardMode::training(), {1, 2}});  // no super-classes
  EXPECT_TRUE(unguided.losses.empty());
}

}  // namespace sparsight::mobile_vmoe_test
