// GMoE as a configuration of the vision transformer (Li et al. 2023, sections 4.1 and 4.2, and the authors' code).
#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/models/make_model.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/models/upcycle.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::gmoe_model_test {
namespace {

using Settings = std::vector<std::string>;

const Settings kGmoe = {"moe.blocks=[8, 10]",        "moe.experts=6",          "router.name=cosine",
                        "capacity.factor=1.5",       "capacity.eval_factor=0", "capacity.rounding=floor_per_choice",
                        "capacity.priority=max_gate"};

Json resolved(const Settings& model, const Settings& more = {}) {
  Config config;
  config.set("model.name=vit");
  for (const Settings* settings : {&model, &more})
    for (const std::string& setting : *settings) config.set(setting);
  return resolve(config, config_sections());
}

int64_t count_parameters(const std::string& size, int64_t classes, const Settings& more = {}) {
  return total(model_cost(resolved({"model.size=" + size, "model.patch=16"}, more), {3, 224, 224, classes})).parameters;
}

// Depth 12, 8 x 8 pixels, 5 tokens.
const Settings kTiny = {"model.width=16", "model.depth=12", "model.heads=2", "model.patch=4"};

std::shared_ptr<ImageModel> tiny(const Settings& more, uint64_t seed = 1) {
  const auto model = make_model(resolved(kTiny, more), {1, 8, 8, 3}, {});
  initialize(*model, seed);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : model->parameters()) parameter.mul_(5);  // so that every part matters
  return model;
}

at::Tensor images(int64_t count) { return test::random_tensor({count, 1, 8, 8}, 3, torch::kFloat).sigmoid(); }

ModelOutput run(ImageModel& model, const at::Tensor& pixels, const ForwardMode& mode = ForwardMode::evaluation(),
                uint64_t step = 2) {
  const torch::NoGradGuard no_grad;
  return model.forward({.images = pixels, .mode = mode, .random = {1, step}});
}

Settings with(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

}  // namespace

// Section 2 of the specification, without a head: the head adds D K + K.
TEST(GmoeModel, G1_DenseParameters) {
  for (const auto& [size, width, count] :
       {std::tuple{"tiny", 192, 5524416}, {"small", 384, 21665664}, {"base", 768, 85798656}})
    EXPECT_EQ(count_parameters(size, 7), count + 7 * width + 7) << size;
  const auto model = tiny({});
  EXPECT_EQ(run(*model, images(2)).logits.sizes(), (std::vector<int64_t>{2, 3}));
}

TEST(GmoeModel, G2_SparseParameters) {
  EXPECT_EQ(count_parameters("small", 345, kGmoe), 33814363);
  for (const auto& [size, width, count] :
       {std::tuple{"tiny", 192, 8585026}, {"small", 384, 33681538}, {"base", 768, 133419778}})
    EXPECT_EQ(count_parameters(size, 7, kGmoe), count + 7 * width + 7) << size;
  EXPECT_NEAR(static_cast<double>(count_parameters("small", 5, kGmoe)) / (1 << 20), 32.12, 0.005);  // a later paper's
}

TEST(GmoeModel, G3_PlacementsAndNone) {
  const auto routed = [](const Settings& more) {
    std::vector<std::string> layers;
    for (const Routing& routing : run(*tiny(with(more, {"moe.experts=3"})), images(1)).routings)
      layers.push_back(routing.layer);
    return layers;
  };
  using Layers = std::vector<std::string>;
  EXPECT_EQ(routed({"moe.blocks=[8, 10]"}), (Layers{"blocks.8.mlp", "blocks.10.mlp"}));
  EXPECT_EQ(routed({"moe.blocks=[0, 2, 4, 6, 8, 10]"}).size(), 6u);
  EXPECT_EQ(routed({"moe.blocks=[-3, -2, -1]"}), (Layers{"blocks.9.mlp", "blocks.10.mlp", "blocks.11.mlp"}));
  EXPECT_EQ(routed({"moe.blocks=[1, 5, 6]"}), (Layers{"blocks.1.mlp", "blocks.5.mlp", "blocks.6.mlp"}));
  EXPECT_TRUE(torch::equal(run(*tiny({"moe.blocks=[]", "router.name=cosine"}), images(3)).logits,
                           run(*tiny({}), images(3)).logits));
}

TEST(GmoeModel, G7_TheLinearRouterIsOneKeyAway) {
  const auto model = tiny(with(kGmoe, {"router.name=softmax_topk", "router.k=1"}));
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters["blocks.8.mlp.router.weight"].sizes(), (std::vector<int64_t>{6, 16}));
  EXPECT_EQ(parameters.find("blocks.8.mlp.router.bias"), nullptr);
  EXPECT_EQ(parameters.find("blocks.8.mlp.router.codebook"), nullptr);
}

// 3000 tokens of 6 logits: the standard error of the deviation is (1/6) / sqrt(2 * 18000) = 9e-4.
TEST(GmoeModel, G8_NoiseWhileTrainingOnly) {
  const auto model = tiny(kGmoe);
  const auto logits = [&](const ForwardMode& mode, uint64_t step) { return run(*model, images(8), mode, step).logits; };
  EXPECT_TRUE(torch::equal(logits(ForwardMode::evaluation(), 2), logits(ForwardMode::evaluation(), 3)));
  EXPECT_FALSE(torch::equal(logits(ForwardMode::training(), 2), logits(ForwardMode::training(), 3)));
  const Routing still = run(*model, images(8)).routings.at(0);
  EXPECT_TRUE(!still.noisy_logits.defined() || torch::equal(still.noisy_logits, still.clean_logits));
  const ModelOutput train = run(*model, images(600), ForwardMode::training());
  const Routing& routing = train.routings.at(0);
  const at::Tensor noise = (routing.noisy_logits - routing.clean_logits).to(torch::kDouble);
  EXPECT_NEAR(noise.std().item<double>(), 1.0 / 6, 4e-3);
  EXPECT_NEAR(noise.mean().item<double>(), 0, 5e-3);
}

TEST(GmoeModel, G10_AllExpertsAreTheDenseSum) {
  const MoeSpec spec = read_moe_spec(
      resolved({}, {"moe.experts=4", "moe.hidden=12", "router.name=cosine", "router.k=4", "router.renormalize=off"}));
  MoeLayer layer(spec, {.path = "moe", .width = 6});
  initialize(layer, 1);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : layer.parameters())
    parameter.add_(test::random_tensor(parameter.sizes(), 5, torch::kFloat));
  const at::Tensor tokens = test::random_tensor({20, 6}, 3, torch::kFloat);
  const MoeOutput out = layer.forward({tokens, {.images = 20, .per_image = 1}, ForwardMode::evaluation()});
  const at::Tensor probability = out.routing.clean_logits.softmax(1);
  const auto p = layer.named_parameters();
  at::Tensor sum = torch::zeros_like(tokens);
  for (int64_t e = 0; e < 4; ++e) {
    const at::Tensor hidden = torch::gelu(torch::addmm(p["experts.b1"][e], tokens, p["experts.w1"][e]));
    sum += probability.select(1, e).unsqueeze(1) * torch::addmm(p["experts.b2"][e], hidden, p["experts.w2"][e]);
  }
  EXPECT_TRUE(test::near(out.tokens, sum, 1e-5));
}

// 40 tokens, 4 experts: floor(0.5 ceil(40 / 4)) = 5 rows each, so that at least half of the tokens get nothing. Of each
// expert those with the smallest largest gate are dropped, and their output is zero, to which the block adds its input.
TEST(GmoeModel, G12_TheSmallestGatesAreDroppedAndTheirOutputIsZero) {
  const MoeSpec spec =
      read_moe_spec(resolved({}, {"moe.experts=4", "moe.hidden=12", "router.name=cosine", "capacity.eval_factor=0.5",
                                  "capacity.rounding=floor_per_choice", "capacity.priority=max_gate"}));
  MoeLayer layer(spec, {.path = "moe", .width = 6});
  initialize(layer, 1);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : layer.parameters())
    parameter.add_(test::random_tensor(parameter.sizes(), 5, torch::kFloat));
  const MoeOutput out = layer.forward(
      {test::random_tensor({40, 6}, 3, torch::kFloat), {.images = 40, .per_image = 1}, ForwardMode::evaluation()});
  const Routing& routing = out.routing;
  EXPECT_EQ(routing.capacity.item<int64_t>(), 5);
  const at::Tensor largest = routing.clean_logits.softmax(1).amax(1).index_select(0, routing.token);
  int64_t dropped = 0;
  for (int64_t e = 0; e < 4; ++e) {
    const at::Tensor mine = routing.expert == e, kept = largest.masked_select(mine & routing.kept),
                     lost = largest.masked_select(mine & ~routing.kept);
    EXPECT_LE(kept.numel(), 5);
    dropped += lost.numel();
    if (lost.numel() == 0) continue;
    EXPECT_EQ(kept.numel(), 5) << "tokens are dropped although there is room";
    EXPECT_LE(lost.max().item<float>(), kept.min().item<float>()) << "expert " << e;
  }
  EXPECT_GE(dropped, 20);
  const at::Tensor is_zero = (out.tokens == 0).all(1).index_select(0, routing.token);
  EXPECT_TRUE(torch::equal(is_zero, ~routing.kept));
}

// 4096 tokens, against a loop that takes the tokens of one expert after the other, computes them and puts them back.
// `./dev bench moe` compares their times.
TEST(GmoeModel, G22_GroupedExpertsEqualTheLoop) {
  const MoeSpec spec = read_moe_spec(resolved({}, {"moe.experts=6", "moe.hidden=256", "router.name=cosine"}));
  MoeLayer layer(spec, {.path = "moe", .width = 64});
  initialize(layer, 1);
  const torch::NoGradGuard no_grad;
  const auto p = layer.named_parameters();
  const at::Tensor tokens = test::random_tensor({4096, 64}, 3, torch::kFloat);
  const MoeOutput grouped = layer.forward({tokens, {.images = 4096, .per_image = 1}, ForwardMode::evaluation()});
  const at::Tensor gate = grouped.routing.gate.unsqueeze(1), sum = torch::zeros_like(tokens);
  for (int64_t e = 0; e < 6; ++e) {
    const at::Tensor own = (grouped.routing.expert == e).nonzero().squeeze(1);
    const at::Tensor hidden =
        torch::gelu(torch::addmm(p["experts.b1"][e], tokens.index_select(0, own), p["experts.w1"][e]));
    sum.index_copy_(0, own, gate.index_select(0, own) * torch::addmm(p["experts.b2"][e], hidden, p["experts.w2"][e]));
  }
  EXPECT_TRUE(torch::equal(grouped.routing.token, torch::arange(4096)));
  EXPECT_TRUE(test::near(grouped.tokens, sum, 1e-5));
}

// With room for all a prediction does not depend on the other images of its batch; with 1.5 times the mean it does.
TEST(GmoeModel, G13_WithoutALimitImagesAreIndependent) {
  const at::Tensor pixels = images(24);
  const auto alone = tiny(kGmoe), limited = tiny(with(kGmoe, {"capacity.eval_factor=-1"}));
  const auto first = [&](ImageModel& model, int64_t count) {
    return run(model, pixels.narrow(0, 0, count)).logits.narrow(0, 0, 2);
  };
  EXPECT_TRUE(test::near(first(*alone, 24), first(*alone, 2), 1e-5));
  EXPECT_FALSE(test::near(first(*limited, 24), first(*limited, 2), 1e-5));
  EXPECT_FALSE(run(*limited, pixels).routings.at(0).kept.all().item<bool>());
  EXPECT_TRUE(run(*alone, pixels).routings.at(0).kept.all().item<bool>());
}

TEST(GmoeModel, G16_TheLayerHasTheRightGradients) {
  const MoeSpec spec = read_moe_spec(resolved({}, {"moe.experts=3", "moe.hidden=5", "router.name=cosine"}));
  MoeLayer layer(spec, {.path = "moe", .width = 4});
  initialize(layer, 1);
  layer.to(torch::kDouble);
  std::vector<at::Tensor> leaves{test::random_tensor({7, 4}, 3)};
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : layer.parameters()) {
      parameter.add_(test::random_tensor(parameter.sizes(), 5) * 0.5);
      leaves.push_back(parameter);
    }
  }
  const at::Tensor upstream = test::random_tensor({7, 4}, 4);
  const auto loss = [&] {
    const MoeOutput out = layer.forward({leaves[0], {.images = 7, .per_image = 1}, ForwardMode::training(), {1, 1}});
    at::Tensor sum = (out.tokens * upstream).sum();
    for (const NamedLoss& auxiliary : out.routing.losses) sum = sum + auxiliary.weight * auxiliary.value;
    return sum;
  };
  EXPECT_LT(test::gradient_error(loss, leaves, 1e-6), 1e-6);
}

namespace {

std::shared_ptr<ImageModel> upcycled_from(const ImageModel& dense, const Settings& more = {}) {
  const auto sparse = tiny(with(kGmoe, more), 2);
  NamedTensors tensors;
  for (const auto& [name, tensor] : named_weights(dense)) tensors.emplace_back(name, tensor.detach().clone());
  LoadOptions options;
  options.derive = upcycle_dense_mlps(*sparse, {});
  load_weights(*sparse, tensors, options);
  return sparse;
}

}  // namespace

TEST(GmoeModel, G17_ExpertsAreCopiesOfTheDenseMlp) {
  const auto dense = tiny({});
  const torch::NoGradGuard no_grad;
  const auto of_dense = dense->named_parameters();
  uint64_t seed = 7;
  for (const char* bias : {"blocks.8.mlp.fc1.bias", "blocks.8.mlp.fc2.bias", "blocks.10.mlp.fc1.bias",
                           "blocks.10.mlp.fc2.bias"})  // they start at 0, as those of the experts do
    at::Tensor(of_dense[bias]).copy_(test::random_tensor(of_dense[bias].sizes(), seed++, torch::kFloat));
  const auto sparse = upcycled_from(*dense);
  const auto of_sparse = sparse->named_parameters();
  for (const std::string block : {"blocks.8.mlp.", "blocks.10.mlp."})
    for (int64_t e = 0; e < 6; ++e) {
      EXPECT_TRUE(torch::equal(of_sparse[block + "experts.w1"][e], of_dense[block + "fc1.weight"].t()));
      EXPECT_TRUE(torch::equal(of_sparse[block + "experts.b1"][e], of_dense[block + "fc1.bias"]));
      EXPECT_TRUE(torch::equal(of_sparse[block + "experts.w2"][e], of_dense[block + "fc2.weight"].t()));
      EXPECT_TRUE(torch::equal(of_sparse[block + "experts.b2"][e], of_dense[block + "fc2.bias"]));
    }
  at::Tensor w1 = of_sparse["blocks.8.mlp.experts.w1"];
  w1[3].add_(1);
  for (int64_t e = 0; e < 6; ++e) EXPECT_EQ(torch::equal(w1[e], of_dense["blocks.8.mlp.fc1.weight"].t()), e != 3) << e;
}

// The gate of the one expert is a probability, which scales its MLP down; divided by the gates' sum it is 1.
TEST(GmoeModel, G18_UpcyclingKeepsTheFunctionWhereTheGateIsOne) {
  const auto dense = tiny({});
  const at::Tensor want = run(*dense, images(4)).logits;
  const double largest = want.abs().max().item<double>();
  EXPECT_TRUE(
      test::near(run(*upcycled_from(*dense, {"router.renormalize=on"}), images(4)).logits, want, 1e-5 * largest));
  EXPECT_FALSE(test::near(run(*upcycled_from(*dense), images(4)).logits, want, 1e-2 * largest));
}

// Where only the MLP of one block adds anything, the images that lose it have the logits of a model without it: a share
// of 0.1 i / 11 in block i. 4000 images: standard errors of 0.0033 and 0.0047 in blocks 5 and 11.
TEST(GmoeModel, G20_DropPathRisesLinearlyAndStopsInEvaluation) {
  const at::Tensor pixels = images(1).expand({4000, 1, 8, 8}).contiguous();
  const auto only = [&](int block, const Settings& more) {
    const auto model = tiny(more);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->named_parameters()) {
      const std::string& name = parameter.key();
      const bool last = name.find(".attn.proj.") != std::string::npos || name.find(".mlp.fc2.") != std::string::npos;
      if (last && name.rfind(cat("blocks.", block, ".mlp."), 0) != 0) parameter.value().zero_();
    }
    return model;
  };
  for (const int block : {0, 5, 11}) {
    const auto model = only(block, {"model.drop_path=0.1"});
    const at::Tensor few = pixels.narrow(0, 0, 2), without = run(*only(-1, {}), few).logits[0];
    EXPECT_TRUE(torch::equal(run(*model, few).logits, run(*only(block, {}), few).logits));
    const at::Tensor logits = run(*model, pixels, ForwardMode::training()).logits;
    const double lost = (logits - without).abs().amax(1).lt(1e-5).to(torch::kDouble).mean().item<double>();
    EXPECT_NEAR(lost, 0.1 * block / 11, block == 0 ? 0 : 4 * 0.0047) << block;
  }
}

}  // namespace sparsight::gmoe_model_test
