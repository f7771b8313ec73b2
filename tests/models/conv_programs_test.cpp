// Every model with convolutions as a program against the same model with tensors.
#include <gtest/gtest.h>

#include <cmath>

#include "sparsight/models/register_models.h"
#include "sparsight/nn/init.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/near.h"
#include "tests/support/program_answers.h"
#include "tests/support/thread_count.h"

namespace sparsight::conv_programs_test {
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
      {"convnext", {{"widths", {8, 24, 40}}}, {}, 32, 48},
      {"convnext", {{"widths", {8, 12}}, {"depths", {1, 2}}, {"patch", 2}}, {-1}, 13, 18},
      {"mnist_cnn", Json::object(), {}, 13, 10},
      {"mnist_cnn", Json::object(), {0}, 9, 9},
      {"whitened_cnn", {{"widths", {8, 24}}}, {}, 13, 22},
      {"whitened_cnn", {{"widths", {12, 16}}}, {0}, 16, 9},
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
std::shared_ptr<ImageModel> build_model(const Case& c) {
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

at::Tensor make_images(const Case& c, int64_t count) {
  return test::random_tensor({count, 3, c.height, c.width}, 5, torch::kFloat).abs();
}

at::Tensor compute_logits(const ImageModel& model, const Case& c, const at::Tensor& images,
                          const engine::WeightForm& form = {}) {
  return test::program_output(model, {3, c.height, c.width, 5}, images, form).logits;
}

double value_scale(const at::Tensor& x) { return std::max(1.0, x.abs().max().item<double>()); }

}  // namespace

TEST(ConvPrograms, HaveTheLogitsOfTheirLayers) {
  test::at_each_level([](const std::string& level) {
    for (const Case& c : cases()) {
      const auto model = build_model(c);
      for (const int64_t images : {1, 2, 3}) {
        const at::Tensor x = make_images(c, images), want = model->forward({.images = x}).logits;
        EXPECT_TRUE(test::near(compute_logits(*model, c, x), want, 1e-4 * value_scale(want))) << level << " " << c.name;
      }
    }
  });
}

// bf16 keeps 8 bits of a weight.
TEST(ConvPrograms, FewerBitsPerWeightChangeLogitsALittle) {
  for (const Case& c : cases()) {
    const auto model = build_model(c);
    const at::Tensor x = make_images(c, 2), exact = compute_logits(*model, c, x),
                     half = compute_logits(*model, c, x, {.type = WeightType::bf16});
    EXPECT_FALSE(torch::equal(half, exact)) << c.name;
    EXPECT_TRUE(test::near(half, exact, 0.1 * value_scale(exact))) << c.name;
  }
}

TEST(ConvPrograms, HaveTheSameBitsForAnyNumberOfThreads) {
  for (const Case& c : cases()) {
    const auto model = build_model(c);
    for (const int64_t images : {1, 5}) {
      const at::Tensor x = make_images(c, images);
      at::Tensor first;
      for (const int threads : {1, 2, 4}) {
        const test::ThreadCount some(threads);
        const at::Tensor logits = compute_logits(*model, c, x);
        if (!first.defined()) first = logits;
        EXPECT_TRUE(torch::equal(logits, first)) << c.name << " " << threads;
      }
    }
  }
}

}  // namespace sparsight::conv_programs_test
