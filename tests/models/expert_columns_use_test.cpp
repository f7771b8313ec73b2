// Expert columns of convolutional networks in use: cost, packed weights, replays, guidance, other routers, mistakes.
#include <gtest/gtest.h>

#include "sparsight/models/mobilenet.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/models/routings.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/parameter_memory.h"
#include "tests/models/expert_columns.h"
#include "tests/support/cost_coverage.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/program_answers.h"

namespace sparsight::expert_columns_use_test {
namespace {

using test::column_cases;
using test::column_images;
using test::column_model;
using test::ColumnCase;
using test::ColumnSettings;

}  // namespace

class ExpertColumnsUse : public ::testing::TestWithParam<ColumnCase> {};

// MobileNetV2 at 224 pixels, ten experts in the two blocks of 160 channels with a residual, one router of 160 x 10:
//   an expert   160 * 960 + 9 * 960 + 960 * 160 weights and norms of 2 * (960 + 960 + 160): 320,000 parameters
//   total       3,504,872 + 2 * 9 * 320,000 + 1,600 = 9,266,472; an image uses 3,506,472 of them
//   k = 2       one more column: 640,000 parameters, and 7² * 2 * 315,840 = 30,952,320 multiply-adds
TEST(ExpertColumnsCost, IsThatOfOneColumn) {
  const MetaParameters without_memory;
  const auto cost = [](int64_t k) {
    Json config{{"model", {{"name", "mobilenet"}}}, {"moe", {{"blocks", {-3, -2}}, {"experts", 10}}},
                {"experts", {{"name", "mlp"}}},     {"capacity", Json::object()},
                {"losses", Json::object()},         {"router", {{"name", "per_image"}, {"k", k}, {"scope", "model"}}}};
    if (k == 0) config["moe"]["blocks"] = Json::array(), config["router"]["k"] = 1;
    return total(model_cost(config, {3, 224, 224, 1000}));
  };
  const Cost dense = cost(0), one = cost(1), two = cost(2);
  EXPECT_EQ(dense.parameters, 3504872);
  EXPECT_EQ(dense.active_parameters, 3504872);
  EXPECT_EQ(one.parameters, 9266472);
  EXPECT_EQ(one.active_parameters, 3506472);
  EXPECT_EQ(one.multiply_adds, dense.multiply_adds + 1600);
  EXPECT_EQ(one.weight_bytes, dense.weight_bytes + 4 * 1600);
  EXPECT_EQ(two.parameters, one.parameters);
  EXPECT_EQ(two.active_parameters, one.active_parameters + 640000);
  EXPECT_EQ(two.multiply_adds, one.multiply_adds + 30952320);
  // Weights, and of the norms the running averages too.
  EXPECT_EQ(two.weight_bytes, one.weight_bytes + 2 * 4 * (315840 + 4 * 2080));
}

TEST_P(ExpertColumnsUse, CostIsDeclaredPartByPart) {
  const ColumnSettings settings;
  const auto model = column_model(GetParam(), &settings, 1);
  EXPECT_EQ(test::model_complaint(*model, GetParam().model), "");
}

TEST_P(ExpertColumnsUse, ColumnsOfAProgramAreTheSame) {
  const ColumnSettings settings{.router = {{"name", "per_image"}, {"k", 2}}};
  const auto model = column_model(GetParam(), &settings, 1);
  const at::Tensor x = column_images(5), want = model->forward({x}).logits;
  const double scale = std::max(1.0, want.abs().max().item<double>());
  EXPECT_TRUE(test::near(test::program_logits(*model, x), want, 1e-4 * scale));
  const at::Tensor half = test::program_logits(*model, x, {.type = WeightType::bf16});
  EXPECT_FALSE(torch::equal(half, want));
}

TEST_P(ExpertColumnsUse, ARoutingIsReplayed) {
  const ColumnSettings settings;
  const auto model = column_model(GetParam(), &settings, 1);
  const at::Tensor x = column_images(6);
  const ModelOutput own = model->forward({x});
  ModelInput input{x.flip(0)};
  const RoutingReplay replay(to_routings(own));
  input.routings = replay.of(torch::arange(6, torch::kLong));
  const ModelOutput replayed = model->forward(input);
  EXPECT_TRUE(torch::equal(replayed.routings[0].expert, own.routings[0].expert));
  EXPECT_FALSE(torch::equal(replayed.logits, model->forward({x.flip(0)}).logits));
  input.images = x;
  EXPECT_TRUE(torch::equal(model->forward(input).logits, own.logits));
}

// -sum_e t_e log p_e, averaged over images, as 0.3 of the loss; it trains the router and the blocks before it, and no
// expert.
TEST_P(ExpertColumnsUse, SuperClassesGuideTheRouter) {
  const ColumnSettings settings;
  const auto model = column_model(GetParam(), &settings, 1);
  ModelInput input{column_images(4), ForwardMode::training(), {1, 2}};
  input.info.target = at::one_hot(torch::tensor({0, 2, 1, 2}), 3).to(torch::kFloat);
  const ModelOutput out = model->forward(input);
  ASSERT_EQ(out.losses.size(), 1u);
  EXPECT_EQ(out.losses[0].name, "superclass");
  EXPECT_DOUBLE_EQ(out.losses[0].weight, 0.3);
  const at::Tensor logs = at::log_softmax(out.routings[0].clean_logits, 1);
  EXPECT_TRUE(test::near(out.losses[0].value, (-(input.info.target * logs).sum() / 4).item<double>(), 1e-5));
  out.losses[0].value.backward();
  for (const auto& p : model->named_parameters()) {
    const at::Tensor& grad = p.value().grad();
    const bool trained = grad.defined() && grad.abs().max().item<double>() > 0;
    if (p.key() == "router.weight" || p.key() == model->named_parameters().keys().front()) {
      EXPECT_TRUE(trained);
    }
    if (p.key().find(".experts.") != std::string::npos) {
      EXPECT_FALSE(trained) << p.key();
    }
  }
}

// With one token per image every router that chooses experts decides for whole images.
TEST_P(ExpertColumnsUse, AnyRouterThatChoosesExpertsDecides) {
  for (const std::string& name : routers().names()) {
    ColumnSettings settings{.experts = 4, .router = {{"name", name}}};
    if (name == "patch_choice") settings.router["patches"] = 1;  // of the one token
    std::shared_ptr<ImageModel> model;
    const auto make = [&] { model = column_model(GetParam(), &settings, 1); };
    if (routers().make(name, Json::object(), "router", RouterShape{8, 4})->mixes_tokens()) {
      EXPECT_NE(testing::error_text<UsageError>(make).find("has to choose experts"), std::string::npos) << name;
      continue;
    }
    make();
    const ModelOutput out = model->forward({column_images(8), ForwardMode::training(), {1, 2}});
    at::Tensor loss = out.logits.square().sum();
    for (const NamedLoss& some : out.losses) loss = loss + some.weight * some.value;
    loss.backward();
    EXPECT_TRUE(out.logits.isfinite().all().item<bool>()) << name;
    ASSERT_EQ(out.routings.size(), 1u) << name;
    EXPECT_EQ(out.routings[0].tokens, 8) << name;
    for (const auto& p : model->named_parameters())
      if (p.value().grad().defined()) {
        EXPECT_TRUE(p.value().grad().isfinite().all().item<bool>()) << name << " " << p.key();
      }
  }
}

// A shared expert sees every image, ungated: with the routed ones at 0 it alone is the branch.
TEST_P(ExpertColumnsUse, SharedExpertsAreAddedUngated) {
  const ColumnSettings settings{.experts = 2, .moe = {{"shared", 1}}};
  const auto model = column_model(GetParam(), &settings, 1);
  const at::Tensor x = column_images(3), before = model->forward({x}).logits;
  {
    const torch::NoGradGuard no_grad;
    for (const auto& p : model->named_parameters())
      if (p.key().find(".moe.shared.0.") != std::string::npos) p.value().mul_(2);
  }
  EXPECT_FALSE(torch::allclose(model->forward({x}).logits, before, 1e-3, 1e-3));
  EXPECT_EQ(test::model_complaint(*model, GetParam().model), "");
}

TEST_P(ExpertColumnsUse, MistakesAreOneLine) {
  const auto message = [&](const ColumnSettings& settings, std::vector<int64_t> blocks) {
    ColumnCase c = GetParam();
    c.blocks = std::move(blocks);
    return testing::error_text<UsageError>([&] { column_model(c, &settings, 1); });
  };
  EXPECT_NE(message({.moe = {{"hidden", 7}}}, {-1}).find("[moe] hidden = 7, but experts of whole images are copies of"),
            std::string::npos);
  EXPECT_NE(message({}, {40}).find("there is no block 40 in a model of"), std::string::npos);
  EXPECT_NE(message({.router = {{"name", "per_image"}, {"k", 4}}}, {-1}).find("k"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertColumnsUse, ::testing::ValuesIn(column_cases()),
                         [](const auto& info) { return info.param.model; });

}  // namespace sparsight::expert_columns_use_test
