// Every model with convolutions, packed for inference, against the same model on autograd's layers.
#include <gtest/gtest.h>

#include <cmath>

#include "sparsight/core/engines.h"
#include "sparsight/models/register_models.h"
#include "sparsight/nn/init.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/near.h"
#include "tests/support/thread_count.h"

namespace sparsight::packed_conv_models_test {
namespace {

struct Case {
  std::string name;
  Json settings;
  std::vector<int64_t> moe_blocks;
  int64_t height, width;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"cnn", Json::object(), {}, 16, 16},
      {"cnn", {{"widths", {12, 20}}, {"blocks", 2}}, {}, 13, 21},
      {"cnn", {{"widths", {8, 24}}}, {0}, 11, 9},
      {"wide_resnet", {{"widen", 1}}, {}, 32, 32},
      {"wide_resnet", {{"widen", 2}, {"depth", 16}, {"padding", "centred"}}, {}, 17, 11},
      {"wide_resnet", {{"widen", 1}, {"padding", "same"}}, {}, 9, 14},
      {"wide_resnet", {{"widen", 1}}, {-1}, 16, 16},
      {"resnet", {{"base_width", 12}}, {}, 33, 46},
      {"resnet", {{"base_width", 8}, {"depth", 50}, {"stem", "cifar"}}, {}, 11, 14},
      {"resnet", {{"base_width", 8}, {"stem", "cifar"}}, {0}, 16, 16},
      {"mobilenet", {{"width", 0.25}}, {}, 45, 38},
      {"mobilenet", {{"width", 0.1}, {"stem", "cifar"}}, {0}, 11, 14},
      {"mnist_cnn", Json::object(), {}, 13, 10},
      {"mnist_cnn", Json::object(), {0}, 9, 9},
      {"vit", {{"width", 24}, {"heads", 4}, {"depth", 2}, {"patch", 4}, {"stem", {6, 16}}}, {}, 16, 24},
      {"vit",
       {{"width", 24}, {"heads", 4}, {"depth", 2}, {"patch", 4}, {"stem", {6, 16}}, {"stem_norm", "batch"}},
       {},
       16,
       24},
  };
  return all;
}

// Weights, and the running averages, of order 1, so that every term counts.
std::shared_ptr<ImageModel> model_of(const Case& c) {
  auto model = models().make(c.name, c.settings, "model",
                             ModelContext{{3, c.height, c.width, 5}, default_moe_spec(c.moe_blocks)});
  initialize(*model, 1);
  const torch::NoGradGuard no_grad;
  uint64_t seed = 1;
  for (at::Tensor& p : model->parameters())
    p.add_(test::random_tensor(p.sizes(), seed++, torch::kFloat) *
           (p.dim() > 1 ? 0.5 / std::sqrt(static_cast<double>(p[0].numel())) : 0.3));
  for (const auto& item : model->named_buffers()) {
    if (item.key().ends_with("running_mean"))
      item.value().add_(test::random_tensor(item.value().sizes(), seed++, torch::kFloat) * 0.3);
    if (item.key().ends_with("running_var"))
      item.value().add_(test::random_tensor(item.value().sizes(), seed++, torch::kFloat).square());
  }
  return model;
}

at::Tensor images_of(const Case& c, int64_t count) {
  return test::random_tensor({count, 3, c.height, c.width}, 5, torch::kFloat).abs();
}

ModelOutput packed_output(ImageModel& model, const at::Tensor& images, const std::vector<std::string>& taps = {}) {
  const torch::NoGradGuard no_grad;
  return model.forward({.images = images, .taps = taps});
}

// With gradients: not the packed weights.
ModelOutput layers_output(ImageModel& model, const at::Tensor& images, const std::vector<std::string>& taps = {}) {
  return model.forward({.images = images, .taps = taps});
}

double scale_of(const at::Tensor& x) { return std::max(1.0, x.abs().max().item<double>()); }

}  // namespace

TEST(PackedConvModels, HaveTheLogitsAndTapsOfTheirLayers) {
  test::at_each_level([](const std::string& level) {
    for (const Case& c : cases()) {
      const auto model = model_of(c);
      EXPECT_GT(model->pack(WeightType::fp32), 0);
      for (const int64_t images : {1, 2, 3}) {
        const at::Tensor x = images_of(c, images);
        const at::Tensor want = layers_output(*model, x).logits;
        EXPECT_TRUE(test::near(packed_output(*model, x).logits, want, 1e-4 * scale_of(want))) << level << " " << c.name;
        const ModelOutput tapped = packed_output(*model, x, model->tap_names()),
                          layers = layers_output(*model, x, model->tap_names());
        for (const auto& [name, value] : layers.taps)
          EXPECT_TRUE(test::near(tapped.taps.at(name), value, 1e-4 * scale_of(value))) << c.name << " " << name;
      }
    }
  });
}

TEST(PackedConvModels, UseTheirCopies) {
  for (const Case& c : cases()) {
    const auto model = model_of(c);
    const at::Tensor x = images_of(c, 2), before = packed_output(*model, x).logits;
    model->pack(WeightType::bf16);  // other bits
    EXPECT_FALSE(torch::equal(packed_output(*model, x).logits, before)) << c.name;
    EXPECT_TRUE(test::near(layers_output(*model, x).logits, before, 1e-4 * scale_of(before))) << c.name;
  }
}

// Experts and the last layers are ATen's or small products, whose bits depend on the number of rows.
TEST(PackedConvModels, HaveTheSameBitsForAnyNumberOfThreads) {
  for (const Case& c : cases()) {
    if (!c.moe_blocks.empty()) continue;
    const auto model = model_of(c);
    model->pack(WeightType::fp32);
    for (const int64_t images : {1, 5}) {
      const at::Tensor x = images_of(c, images);
      at::Tensor first;
      for (const int threads : {1, 2, 4}) {
        const test::ThreadCount some(threads);
        const at::Tensor logits = packed_output(*model, x).logits;
        if (!first.defined()) first = logits;
        EXPECT_TRUE(torch::equal(logits, first)) << c.name << " " << threads;
      }
    }
  }
}

TEST(PackedConvModels, FollowWeightsAndAveragesThatChangeLater) {
  for (const Case& c : cases()) {
    const auto model = model_of(c);
    model->pack(WeightType::fp32);
    const at::Tensor x = images_of(c, 4), before = packed_output(*model, x).logits;
    {
      const torch::NoGradGuard no_grad;
      for (at::Tensor& p : model->parameters())
        if (p.dim() == 4) p.mul_(1.5);
      model->forward({x, ForwardMode::training(), {1, 0}});  // moves running averages
    }
    const at::Tensor after = packed_output(*model, x).logits, want = layers_output(*model, x).logits;
    EXPECT_FALSE(torch::allclose(after, before, 1e-3, 1e-3)) << c.name;
    EXPECT_TRUE(test::near(after, want, 1e-4 * scale_of(want))) << c.name;
  }
}

// On oneDNN fp32 weights are those of the layers; packed bf16 has no other form.
TEST(PackedConvModels, OnednnReplacesPackedFp32AndNothingElse) {
  for (const Case& c : cases()) {
    const at::Tensor x = images_of(c, 32);  // so many that roundings do not agree in all logits by chance
    for (const WeightType type : {WeightType::fp32, WeightType::bf16}) {
      const auto model = model_of(c);
      model->pack(type);
      const at::Tensor packed = packed_output(*model, x).logits;
      const EngineScope onednn({Engine::kernels, Engine::kernels, Engine::onednn});
      const at::Tensor others = packed_output(*model, x).logits;
      EXPECT_TRUE(test::near(others, packed, 1e-4 * scale_of(packed))) << c.name;
      EXPECT_EQ(torch::equal(others, packed), type != WeightType::fp32) << c.name;
    }
  }
}

}  // namespace sparsight::packed_conv_models_test
