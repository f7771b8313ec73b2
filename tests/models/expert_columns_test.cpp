// What an image gets from the expert columns of a convolutional network: Daxberger et al. 2023, "Mobile V-MoEs",
// equations (1) and (2) with a block's branch as the expert.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/conv_block.h"
#include "tests/models/expert_columns.h"
#include "tests/support/near.h"

namespace sparsight::expert_columns_test {
namespace {

using test::column_cases;
using test::column_images;
using test::column_model;
using test::ColumnCase;
using test::ColumnSettings;

// The largest difference between analytic and central-difference derivatives, on the scale max(1, |numeric|), for the
// elements of each tensor with the largest gradient and with a middle one.
std::pair<double, std::string> sampled_gradient_error(const std::function<at::Tensor()>& f,
                                                      const std::map<std::string, at::Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors) at::Tensor(tensor).requires_grad_(true);
  f().backward();
  const torch::NoGradGuard no_grad;
  constexpr double kStep = 1e-7;
  std::pair<double, std::string> worst;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor grad = tensor.grad().contiguous().flatten();
    for (const int64_t i : {grad.abs().argmax().item<int64_t>(), grad.numel() / 2}) {
      double& element = tensor.data_ptr<double>()[i];
      const double kept = element;
      element = kept + kStep;
      const double above = f().item<double>();
      element = kept - kStep;
      const double below = f().item<double>();
      element = kept;
      const double numeric = (above - below) / (2 * kStep);
      const double error = std::abs(grad[i].item<double>() - numeric) / std::max(1.0, std::abs(numeric));
      worst = std::max(worst, {error, cat(name, ": ", grad[i].item<double>(), " and ", numeric)});
    }
  }
  return worst;
}

void expect_dense_output(const ColumnCase& c, const ColumnSettings& settings) {
  const auto dense = column_model(c, nullptr, 1), columns = column_model(c, &settings, 2);
  const LoadReport report = test::copy_into_columns(*columns, *dense);
  EXPECT_EQ(report.fresh, std::vector<std::string>{"router.weight"}) << describe(report);
  EXPECT_TRUE(report.unused.empty()) << describe(report);
  const at::Tensor x = column_images(5), want = dense->forward({x}).logits;
  EXPECT_TRUE(test::near(columns->forward({x}).logits, want, 1e-5 * std::max(1.0, want.abs().max().item<double>())));
}

}  // namespace

class ExpertColumns : public ::testing::TestWithParam<ColumnCase> {};

TEST_P(ExpertColumns, M6_OneExpertIsTheDenseNetwork) { expect_dense_output(GetParam(), {.experts = 1}); }

// The gates of all experts sum to 1.
TEST_P(ExpertColumns, M7_AllExpertsCopiedFromTheDenseBlocksAreTheDenseNetwork) {
  expect_dense_output(GetParam(), {.experts = 3, .router = {{"name", "per_image"}, {"k", 3}}});
}

TEST_P(ExpertColumns, M8_IdenticalExpertsWithGatesOfOneAreTheDenseNetwork) {
  expect_dense_output(GetParam(), {.experts = 4, .router = {{"name", "per_image"}, {"renormalize", true}}});
}

// The same decision in all columns, before and after the blocks behind the router change.
TEST_P(ExpertColumns, M10_TheRouterDecidesOncePerImage) {
  const ColumnSettings settings;
  const auto model = column_model(GetParam(), &settings, 1);
  std::vector<std::string> layers;
  std::vector<at::Tensor> experts;
  ModelInput input{column_images(6)};
  input.pre_experts_hook = [&](MoeLayer& layer, MoeInput&, Routing& routing) {
    layers.push_back(layer.path());
    experts.push_back(routing.expert);
  };
  const ModelOutput before = model->forward(input);
  ASSERT_EQ(before.routings.size(), 1u);
  const Routing& routing = before.routings[0];
  EXPECT_EQ(routing.layer, "router");
  EXPECT_EQ(routing.tokens, 6);
  EXPECT_EQ(routing.layout.per_image, 1);
  EXPECT_EQ(layers.size(), GetParam().blocks.size());
  EXPECT_EQ(layers.front(), GetParam().first_layer);
  for (const at::Tensor& e : experts) EXPECT_TRUE(torch::equal(e, routing.expert));
  EXPECT_GT(std::get<0>(at::_unique(routing.expert)).numel(), 1);  // images differ
  {
    const torch::NoGradGuard no_grad;
    for (const auto& p : model->named_parameters())
      if (p.key().find(".moe.") != std::string::npos) p.value().mul_(1.5);
  }
  const ModelOutput after = model->forward(input);
  EXPECT_TRUE(torch::equal(after.routings[0].expert, routing.expert));
  EXPECT_TRUE(torch::equal(after.routings[0].gate, routing.gate));
  EXPECT_FALSE(torch::equal(after.logits, before.logits));
}

TEST_P(ExpertColumns, M12_AnImageDoesNotDependOnTheOthersOfItsBatch) {
  for (const int64_t k : {1, 2}) {
    const ColumnSettings settings{.router = {{"name", "per_image"}, {"k", k}}};
    const auto model = column_model(GetParam(), &settings, 1);
    const at::Tensor x = column_images(7), together = model->forward({x}).logits;
    const double scale = std::max(1.0, together.abs().max().item<double>());
    for (int64_t i = 0; i < 7; ++i)
      EXPECT_TRUE(test::near(model->forward({x.narrow(0, i, 1)}).logits[0], together[i], 1e-5 * scale)) << i;
    EXPECT_TRUE(test::near(model->forward({x.flip(0)}).logits.flip(0), together, 1e-5 * scale));
  }
}

// In training mode, with batch statistics of each expert's images: images, last shared block, router, experts,
// shortcuts and head. Away from switches of the choice: no logit is within 1e-3 of the chosen one.
TEST_P(ExpertColumns, M15_GradientsFollowDifferences) {
  ColumnCase c = GetParam();
  if (c.model == "cnn") c.settings = {{"widths", {2, 2}}, {"blocks", 2}};
  if (c.model == "resnet") c.settings = {{"base_width", 1}, {"stem", "cifar"}};
  const ColumnSettings settings{.experts = 2};
  const auto model = column_model(c, &settings, 4);
  model->to(torch::kDouble);
  const at::Tensor x = column_images(5).to(torch::kDouble), upstream = test::random_tensor({5, 5}, 3);
  const ModelInput input{.images = x, .mode = ForwardMode::training(), .random = {1, 2}};
  const Routing routing = model->forward(input).routings[0];
  const at::Tensor sorted = std::get<0>(routing.clean_logits.sort(1, true));
  ASSERT_GT((sorted.select(1, 0) - sorted.select(1, 1)).min().item<double>(), 1e-3);
  std::map<std::string, at::Tensor> tensors{{"images", x}};
  const std::string& last = GetParam().last_shared;
  for (const auto& p : model->named_parameters()) {  // of the shared blocks the last one
    const bool of_block = p.key().starts_with("layer") || p.key().starts_with("features");
    if (!of_block || p.key().starts_with(last + ".") || p.key().find(".moe.") != std::string::npos ||
        p.key().starts_with("layer4"))
      tensors[p.key()] = p.value();
  }
  const auto [error, where] =
      sampled_gradient_error([&] { return (model->forward(input).logits * upstream).sum(); }, tensors);
  EXPECT_LT(error, 1e-3) << where;
}

// y = f(x + sum of gates times branches), each branch computed on its own.
TEST(ExpertColumnsOfMobilenet, AreTheGatedSumOfTheirBranches) {
  const ColumnCase c = column_cases().back();
  const ColumnSettings settings{.experts = 4, .router = {{"name", "per_image"}, {"k", 2}}};
  const auto model = column_model(c, &settings, 1);
  ModelInput input{column_images(5)};
  input.taps = {"features.14", "features.15", "features.16", "features.17"};
  const ModelOutput out = model->forward(input);
  const Routing& routing = out.routings[0];
  ASSERT_EQ(routing.expert.size(0), 10);
  EXPECT_LT(routing.gate.sum().item<double>(), 5);  // not divided by their sum
  const auto modules = model->named_modules();
  for (const int64_t block : {15, 16, 17}) {
    const at::Tensor x = out.taps.at(cat("features.", block - 1));
    at::Tensor want = block == 17 ? torch::zeros_like(out.taps.at("features.17")) : x.clone();
    for (int64_t a = 0; a < 10; ++a) {
      const int64_t image = routing.token[a].item<int64_t>(), expert = routing.expert[a].item<int64_t>();
      const auto branch =
          std::dynamic_pointer_cast<ConvBlock>(modules[cat("features.", block, ".moe.experts.", expert)]);
      ASSERT_NE(branch, nullptr);
      want[image] += routing.gate[a] * branch->forward(x.narrow(0, image, 1), false)[0];
    }
    EXPECT_TRUE(test::near(out.taps.at(cat("features.", block)), want, 1e-4 * want.abs().max().item<double>()));
  }
}

// Two images reach at most two of six experts: the others get gradients of 0 and keep their running averages.
TEST_P(ExpertColumns, ExpertsWithoutImagesDoNothing) {
  const ColumnSettings settings{.experts = 6};
  const auto model = column_model(GetParam(), &settings, 1);
  std::map<std::string, at::Tensor> before;
  for (const auto& b : model->named_buffers()) before[b.key()] = b.value().clone();
  const ModelOutput out = model->forward({column_images(2), ForwardMode::training(), {1, 2}});
  out.logits.square().sum().backward();
  std::set<std::string> used;
  for (const int64_t e : {0, 1}) used.insert(std::to_string(out.routings[0].expert[e].item<int64_t>()));
  const auto expert_part = [](const std::string& name) {
    const size_t at = name.find(".experts.");
    return at == std::string::npos ? "" : name.substr(at + 9, name.find('.', at + 9) - at - 9);
  };
  int64_t idle = 0;
  for (const auto& p : model->named_parameters()) {
    const std::string expert = expert_part(p.key());
    if (expert.empty()) continue;
    ASSERT_TRUE(p.value().grad().defined()) << p.key();
    EXPECT_TRUE(p.value().grad().isfinite().all().item<bool>()) << p.key();
    if (used.count(expert)) continue;
    EXPECT_EQ(p.value().grad().abs().max().item<double>(), 0) << p.key();
    ++idle;
  }
  EXPECT_GT(idle, 0);
  for (const auto& b : model->named_buffers()) {
    const std::string expert = expert_part(b.key());
    if (!expert.empty() && b.key().ends_with("num_batches_tracked")) {
      EXPECT_EQ(torch::equal(b.value(), before[b.key()]), used.count(expert) == 0) << b.key();
    }
    if (!expert.empty() && !used.count(expert)) {
      EXPECT_TRUE(torch::equal(b.value(), before[b.key()])) << b.key();
    }
  }
}

// Images of 16 pixels end as maps of one position, where the variance of one image is 0 and its unbiased one 0/0: the
// running averages serve instead, and stay.
TEST(ExpertColumnsOfMobilenet, AGroupOfOneValuePerChannelIsNotNormalisedByItself) {
  ColumnCase c = column_cases().back();
  c.settings["stem"] = "imagenet";
  const ColumnSettings settings{.experts = 6};
  const auto model = column_model(c, &settings, 1);
  const std::string name = "features.17.moe.experts.";
  const auto buffers = model->named_buffers();
  for (uint64_t step = 0; step < 3; ++step) {
    const ModelOutput out = model->forward({column_images(2), ForwardMode::training(), {1, step}});
    EXPECT_TRUE(out.logits.isfinite().all().item<bool>());
    out.logits.square().sum().backward();
    const bool alone = out.routings[0].expert[0].item<int64_t>() != out.routings[0].expert[1].item<int64_t>();
    if (!alone) continue;
    for (int64_t e = 0; e < 6; ++e)
      EXPECT_EQ(buffers[cat(name, e, ".conv.3.num_batches_tracked")].item<int64_t>(), 0) << e;
  }
  for (const auto& b : buffers) EXPECT_TRUE(b.value().isfinite().all().item<bool>()) << b.key();
  for (const auto& p : model->named_parameters())
    EXPECT_TRUE(p.value().grad().isfinite().all().item<bool>()) << p.key();
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertColumns, ::testing::ValuesIn(column_cases()),
                         [](const auto& info) { return info.param.model; });

}  // namespace sparsight::expert_columns_test
