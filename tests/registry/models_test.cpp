// Every registered model, dense and with an MoE layer: forward, backward, save, load, copy, same output; features and
// intermediate results.
#include <gtest/gtest.h>

#include <set>

#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/core/config.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/models/register_models.h"
#include "sparsight/nn/batch_norm.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::models_test {

struct ModelCase {
  std::string name;
  bool with_moe;
};

namespace {

constexpr int64_t kClasses = 5;

// Settings that the model does not have are left out.
std::shared_ptr<ImageModel> make(const ModelCase& c, uint64_t seed, const Json& wanted = Json::object(),
                                 const PixelStatistics& pixels = {}) {
  Config config;
  config.set("model", "name", c.name, "test");
  config.set("moe", "blocks", c.with_moe ? Json{-1} : Json::array(), "test");
  Json all = wanted;
  all["widen"] = 1;  // the wide residual network's minimum width
  all["base_width"] = 16;
  models().get(c.name).describe([&](OptionSet& set) {
    for (const auto& [key, value] : all.items())
      if (set.find(key)) config.set("model", key, value, "test");
  });
  auto model = make_model(resolve(config, config_sections()), {3, 16, 16, kClasses}, pixels);
  initialize(*model, seed);
  return model;
}

at::Tensor images(int64_t count) { return test::random_tensor({count, 3, 16, 16}, 9, torch::kFloat); }

std::vector<ModelCase> all_cases() {
  std::vector<ModelCase> cases;
  for (const std::string& name : models().names())
    for (const bool with_moe : {false, true}) cases.push_back({name, with_moe});
  return cases;
}

}  // namespace

class EveryModel : public ::testing::TestWithParam<ModelCase> {};

TEST_P(EveryModel, GivesEveryParameterAFiniteGradient) {
  auto model = make(GetParam(), 1);
  const ModelOutput out = model->forward({images(8), ForwardMode::training(), {1, 0}});
  ASSERT_EQ(out.logits.sizes(), (std::vector<int64_t>{8, kClasses}));
  EXPECT_EQ(out.losses.size(), GetParam().with_moe ? 2u : 0u);
  at::Tensor loss = at::cross_entropy_loss(out.logits, torch::arange(8, torch::kLong) % kClasses);
  for (const NamedLoss& aux : out.losses) loss = loss + aux.weight * aux.value;
  loss.backward();
  for (const auto& p : model->named_parameters()) {
    ASSERT_TRUE(p.value().grad().defined()) << p.key();
    EXPECT_TRUE(torch::isfinite(p.value().grad()).all().item<bool>()) << p.key();
    EXPECT_GT(p.value().grad().abs().max().item<double>(), 0) << p.key();
  }
}

TEST_P(EveryModel, DescribesItsRoutings) {
  auto model = make(GetParam(), 1);
  const ModelOutput out = model->forward({images(3), ForwardMode::training(), {1, 0}});
  ASSERT_EQ(out.routings.size(), GetParam().with_moe ? 1u : 0u);
  for (const Routing& r : out.routings) {
    EXPECT_NE(model->named_modules().find(r.layer), nullptr) << r.layer;
    EXPECT_EQ(r.layout.images, 3);
    EXPECT_EQ(r.layout.images * r.layout.per_image, r.tokens);
    if (r.layout.grid_height > 0) {
      EXPECT_EQ(r.layout.prefix + r.layout.grid_height * r.layout.grid_width, r.layout.per_image);
    }
  }
}

TEST_P(EveryModel, GivesTheSameOutputAfterItsParametersAreCopiedByName) {
  auto model = make(GetParam(), 1), other = make(GetParam(), 2);
  const at::Tensor x = images(4), expected = model->forward({x}).logits;
  EXPECT_FALSE(torch::equal(other->forward({x}).logits, expected));
  {
    const torch::NoGradGuard no_grad;
    for (const auto& p : model->named_parameters()) other->named_parameters()[p.key()].copy_(p.value());
    for (const auto& b : model->named_buffers()) other->named_buffers()[b.key()].copy_(b.value());
  }
  EXPECT_TRUE(torch::equal(other->forward({x}).logits, expected));
}

TEST_P(EveryModel, EvaluatesAnImageAloneAsInABatch) {
  auto model = make(GetParam(), 1);
  const at::Tensor x = images(6), together = model->forward({x}).logits;
  EXPECT_TRUE(torch::allclose(model->forward({x.slice(0, 2, 3)}).logits[0], together[2], 1e-4, 1e-5));
}

TEST_P(EveryModel, TrainsWithTheSameBitsFromTheSameSeedAndStep) {
  const auto gradient = [&] {
    auto model = make(GetParam(), 1);
    model->forward({images(8), ForwardMode::training(), {1, 3}}).logits.square().sum().backward();
    return model->parameters()[0].grad();
  };
  EXPECT_TRUE(torch::equal(gradient(), gradient()));
}

// Images numbered through the whole batch get the same noise, dropout and drop path in 1, 2 or 4 parts.
TEST_P(EveryModel, S33_AnImageGetsTheSameNoiseHoweverItsBatchIsSplit) {
  auto model = make(GetParam(), 1, {{"dropout", 0.2}, {"drop_path", 0.5}, {"layer_scale", 0.5}});
  ForwardMode mode = ForwardMode::training();
  mode.batch_statistics = false;  // with them a batch norm depends on all images of a part
  const at::Tensor x = images(8);
  const ModelOutput whole = model->forward({x, mode, {1, 3}});
  const auto noise = [](const ModelOutput& out) { return out.routings[0].noisy_logits - out.routings[0].clean_logits; };
  for (const int64_t parts : {2, 4}) {
    std::vector<at::Tensor> logits, noises, experts;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t size = 8 / parts, first = part * size;
      const ModelOutput out = model->forward(
          {x.slice(0, first, first + size), mode, {1, 3}, {.image = torch::arange(first, first + size, torch::kLong)}});
      logits.push_back(out.logits);
      if (!GetParam().with_moe) continue;
      noises.push_back(noise(out));
      experts.push_back(out.routings[0].expert);
    }
    EXPECT_TRUE(torch::allclose(at::cat(logits), whole.logits, 1e-4, 1e-5)) << parts;
    if (!GetParam().with_moe) continue;
    EXPECT_TRUE(torch::allclose(at::cat(noises), noise(whole), 0, 1e-6)) << parts;
    EXPECT_TRUE(torch::equal(at::cat(experts), whole.routings[0].expert)) << parts;
  }
  // Parts that are all numbered from 0 get other noise.
  const at::Tensor unnumbered = model->forward({x.slice(0, 4), mode, {1, 3}}).logits;
  const std::string& name = GetParam().name;
  const std::set<std::string> dropping{"vit", "resnet", "mobilenet", "convnext"};
  const bool samples = GetParam().with_moe || dropping.contains(name);
  const double difference = (unnumbered - whole.logits.slice(0, 4)).abs().max().item<double>();
  EXPECT_EQ(difference < 1e-4 * whole.logits.abs().max().item<double>(), !samples);
}

// Threads share the images of a model without routers.
TEST_P(EveryModel, AttackGradientsDoNotDependOnTheThreadsThatShareImages) {
  AttackedImageModel model(make(GetParam(), 1));
  const at::Tensor x = images(18).sigmoid(), numbers = torch::arange(18, torch::kLong);
  const auto gradient = [&](int threads) {
    const test::ThreadCount thread_count(threads);
    const at::Tensor leaf = x.detach().requires_grad_(true);
    model.forward(leaf, {numbers}).logits.square().sum().backward();
    return leaf.grad();
  };
  const at::Tensor two = gradient(2), one = gradient(1);
  EXPECT_GT(one.abs().max().item<double>(), 0);
  EXPECT_TRUE(test::near(two, one, 1e-4 * one.abs().max().item<double>()));
  for (int again = 0; again < 5; ++again) EXPECT_TRUE(torch::equal(gradient(2), two)) << again;
}

// Depthwise convolutions alone run on oneDNN, which splits their sums over threads (docs/training.md).
TEST_P(EveryModel, TrainsWithTheSameBitsForAnyNumberOfThreads) {
  if (GetParam().name == "mobilenet" || GetParam().name == "convnext") GTEST_SKIP() << "depthwise convolutions";
  const at::Tensor x = images(18);
  std::vector<at::Tensor> first;
  for (const int threads : {1, 2, 4}) {
    const test::ThreadCount thread_count(threads);
    auto model = make(GetParam(), 1);
    ModelInput input{x};
    input.mode.batch_statistics = true;
    model->forward(input).logits.square().sum().backward();
    std::vector<at::Tensor> all = model->buffers();
    for (const at::Tensor& p : model->parameters())
      if (p.grad().defined()) all.push_back(p.grad());
    ASSERT_GT(all.size(), 2u);
    if (first.empty()) first = all;
    ASSERT_EQ(all.size(), first.size());
    for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(torch::equal(all[i], first[i])) << threads << " threads " << i;
  }
}

TEST_P(EveryModel, RefusesImagesOfAnotherShape) {
  EXPECT_THROW(make(GetParam(), 1)->forward({torch::zeros({2, 1, 16, 16})}), Error);
  EXPECT_THROW(make(GetParam(), 1)->forward({torch::zeros({3, 16, 16})}), Error);
}

TEST_P(EveryModel, LogitsAreTheHeadsOfItsFeatures) {
  auto model = make(GetParam(), 1);
  const at::Tensor x = images(4);
  const ModelOutput out = model->forward({x}), features = model->features({x});
  ASSERT_EQ(out.features.dim(), 2);
  EXPECT_EQ(out.features.size(0), 4);
  EXPECT_TRUE(torch::equal(model->classify(out.features), out.logits));
  EXPECT_TRUE(torch::equal(features.features, out.features));
  EXPECT_FALSE(features.logits.defined());
  EXPECT_EQ(features.routings.size(), out.routings.size());
  EXPECT_EQ(features.losses.size(), out.losses.size());
  // One image's features make one image's logits.
  EXPECT_TRUE(torch::allclose(model->classify(out.features.slice(0, 1, 2)), out.logits.slice(0, 1, 2), 1e-5, 1e-6));
}

// Each tap is a module and what it returns; asking for them changes no bit.
TEST_P(EveryModel, GivesItsInnerResultsByName) {
  auto model = make(GetParam(), 1);
  const at::Tensor x = images(4);
  const std::vector<std::string> names = model->tap_names();
  ASSERT_FALSE(names.empty());
  ModelInput input{x};
  EXPECT_TRUE(model->forward(input).taps.empty());
  input.taps = names;
  const ModelOutput out = model->forward(input);
  // To rounding: a tap of the last block makes it compute all tokens.
  EXPECT_TRUE(test::near(out.logits, model->forward({x}).logits, 1e-6));
  ASSERT_EQ(out.taps.size(), names.size());
  for (const std::string& name : names) {
    EXPECT_NE(model->named_modules().find(name), nullptr) << name;
    ASSERT_TRUE(out.taps.at(name).defined()) << name;
    EXPECT_EQ(out.taps.at(name).size(0) % 4, 0) << name;
    EXPECT_TRUE(out.taps.at(name).requires_grad()) << name;
    input.taps = {name};
    const ModelOutput one = model->forward(input);
    ASSERT_EQ(one.taps.size(), 1u) << name;
    EXPECT_TRUE(test::near(one.taps.at(name), out.taps.at(name), 1e-6)) << name;
  }
  input.taps = {names[0] + "x"};
  const std::string message = testing::error_text<UsageError>([&] { model->forward(input); });
  EXPECT_NE(message.find("unknown tap of the model \"" + names[0] + "x\"; did you mean \"" + names[0] + "\"?"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("known: " + join(names)), std::string::npos) << message;
}

TEST_P(EveryModel, IsCopiedWithItsBitsAndSharesNothing) {
  auto model = make(GetParam(), 1, Json::object(), {{0.4, 0.5, 0.6}, {0.2, 0.25, 0.3}});
  {
    const torch::NoGradGuard no_grad;  // buffers, too: batch norm's averages move while training
    model->forward({images(8), ForwardMode::training(), {1, 0}});
  }
  const at::Tensor x = images(4), expected = model->forward({x}).logits;
  const auto copy = clone_model(*model);
  EXPECT_TRUE(torch::equal(copy->forward({x}).logits, expected));
  const auto storages = [](const ImageModel& of) {
    std::set<const void*> all;
    for (const auto& [name, tensor] : named_weights(of))
      if (tensor.numel() > 0) all.insert(tensor.storage().data());
    return all;
  };
  for (const void* storage : storages(*copy)) EXPECT_EQ(storages(*model).count(storage), 0u);
  {
    const torch::NoGradGuard no_grad;
    for (const auto& p : copy->named_parameters()) p.value().add_(1);
  }
  EXPECT_TRUE(torch::equal(model->forward({x}).logits, expected));
  EXPECT_FALSE(torch::equal(copy->forward({x}).logits, expected));
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryModel, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name + (info.param.with_moe ? "_moe" : "_dense"); });

}  // namespace sparsight::models_test
