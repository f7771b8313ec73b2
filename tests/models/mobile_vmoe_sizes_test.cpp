// Mobile V-MoE (Daxberger et al. 2023): every size, patch and variant of configs/mobile_vmoe against the specification.
#include <map>

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/models/make_model.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/models/vit.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"

namespace sparsight::mobile_vmoe_sizes_test {
namespace {

constexpr ImageShape kImagenet{3, 224, 224, 1000};

// Specification 6.4, patches of 32 pixels, ten experts in two layers and one router: parameters of the dense model, of
// the routed one, and those that an image uses.
struct Row {
  std::string size;
  int64_t layers, width, heads, dense, all, active;
};
const std::vector<Row> kRows{
    {"12x384", 12, 384, 6, 22878952, 44151016, 22882792}, {"9x384", 9, 384, 6, 17555560, 38827624, 17559400},
    {"6x384", 6, 384, 6, 12232168, 33504232, 12236008},   {"12x192", 12, 192, 3, 6131560, 11459176, 6133480},
    {"9x192", 9, 192, 3, 4796968, 10124584, 4798888},     {"6x192", 6, 192, 3, 3462376, 8789992, 3464296},
    {"12x96", 12, 96, 3, 1739176, 3075880, 1740136},      {"9x96", 9, 96, 3, 1403656, 2740360, 1404616},
    {"6x96", 6, 96, 3, 1068136, 2404840, 1069096},        {"12x64", 12, 64, 2, 864872, 1461096, 865512},
    {"9x64", 9, 64, 2, 714920, 1311144, 715560},          {"6x64", 6, 64, 2, 564968, 1161192, 565608}};

Json resolved(const std::string& variant, const std::vector<std::string>& settings) {
  Config config = Config::from_file(test::source_path("configs/mobile_vmoe/" + variant + ".toml"));
  for (const std::string& setting : settings) config.set(setting);
  return resolve(config, config_sections());
}

Json resolved(const std::string& variant, const std::string& size, int64_t patch) {
  return resolved(variant, {"model.size=" + size, cat("model.patch=", patch)});
}

Cost total_cost(const Json& config) {
  return total(model_cost(config, kImagenet, {cost_convention("multiply_adds"), 1}));
}

int64_t parameters_built(const Json& config) {
  const auto model = make_model(config, kImagenet);
  int64_t count = 0;
  for (const at::Tensor& p : model->parameters()) count += p.numel();
  return count;
}

// Section 3.1 of the specification: embedding, layers, end.
int64_t dense_parameters(const Row& row, int64_t patch) {
  const int64_t d = row.width, tokens = (224 / patch) * (224 / patch) + 1, mlp = 8 * d * d + 5 * d;
  return 3 * patch * patch * d + 2 * d + tokens * d + row.layers * (4 * d * d + 4 * d + mlp + 4 * d) + 2 * d +
         1000 * d + 1000;
}

}  // namespace

TEST(MobileVmoeSizes, M1_TheTwelveDenseModelsHaveTheirParameters) {
  for (const Row& row : kRows) {
    EXPECT_EQ(parameters_built(resolved("dense", row.size, 32)), row.dense) << row.size;
    EXPECT_EQ(dense_parameters(row, 32), row.dense) << row.size;
    EXPECT_EQ(parameters_built(resolved("dense", row.size, 16)), dense_parameters(row, 16)) << row.size;
  }
  EXPECT_EQ(dense_parameters(kRows[3], 16), 5717416);   // DeiT-Ti/16
  EXPECT_EQ(dense_parameters(kRows[0], 16), 22050664);  // ViT-S/16
}

TEST(MobileVmoeSizes, M2_TheirRoutedTwinsHaveTheirParameters) {
  for (const Row& row : kRows) {
    const Json config = resolved("per_image", row.size, 32);
    EXPECT_EQ(parameters_built(config), row.all) << row.size;
    EXPECT_EQ(total_cost(config).parameters, row.all) << row.size;
    EXPECT_EQ(total_cost(config).active_parameters, row.active) << row.size;
  }
}

// DeiT-Ti/16 with k = 1 .. 4 for an image; all experts with two routers; other numbers of experts.
TEST(MobileVmoeSizes, M3_TheParametersThatAnImageUses) {
  const auto with = [](const std::string& variant, const std::vector<std::string>& more) {
    std::vector<std::string> settings{"model.patch=16"};
    settings.insert(settings.end(), more.begin(), more.end());
    return total_cost(resolved(variant, settings));
  };
  EXPECT_EQ(with("per_image", {}).active_parameters, 5719336);
  EXPECT_EQ(with("per_image", {"router.k=2"}).active_parameters, 6311080);  // the paper's 6.31 M
  EXPECT_EQ(with("per_image", {"router.k=3"}).active_parameters, 6902824);
  EXPECT_EQ(with("per_image", {"router.k=4"}).active_parameters, 7494568);
  EXPECT_EQ(with("per_token", {"router.k=2"}).parameters, 11046952);  // the paper's 11.05 M
  EXPECT_EQ(with("per_image", {"moe.experts=5"}).parameters, 8085352);
  EXPECT_EQ(with("per_image", {}).parameters, 11045032);
  EXPECT_EQ(with("per_image", {"moe.experts=15"}).parameters, 14004712);
  EXPECT_EQ(with("per_image", {"moe.experts=20"}).parameters, 16964392);
}

// Nothing but the size and the patch has to be set. One router has 10 D weights.
TEST(MobileVmoeSizes, EveryVariantIsBuiltFromItsConfiguration) {
  const struct {
    std::string name;
    int64_t routers;
  } variants[] = {{"dense", 0}, {"per_image", 1}, {"end_to_end", 1}, {"per_layer", 2}, {"per_token", 2}};
  for (const auto& variant : variants)
    for (const Row& row : kRows)
      for (const int64_t patch : {32, 16}) {
        const Cost cost = total_cost(resolved(variant.name, row.size, patch));
        const int64_t dense = dense_parameters(row, patch), routers = variant.routers * 10 * row.width;
        const int64_t experts = variant.routers == 0 ? 0 : row.all - row.dense - 10 * row.width;
        EXPECT_EQ(cost.parameters, dense + experts + routers) << variant.name << row.size << "/" << patch;
        EXPECT_EQ(cost.active_parameters, dense + routers) << variant.name << row.size << "/" << patch;
      }
}

TEST(MobileVmoeSizes, EachVariantRoutesAsItsNameSays) {
  const auto routers = [](const std::string& variant) {
    std::vector<std::string> names;
    const auto model = make_model(resolved(variant, "6x64", 32), kImagenet);
    for_each_router_owner(*model, [&](HasRouter& owner) {
      std::string losses;
      for (size_t i = 0; i < routing_losses().size(); ++i)
        if (owner.policy().losses.weights[i] > 0)
          losses += cat(" ", routing_losses()[i].name, " ", owner.policy().losses.weights[i]);
      names.push_back(cat(owner.routing_name(), " ", owner.own_router()->registered_name(),
                          owner.own_router()->has_noise() ? " noise" : "", losses));
    });
    return names;
  };
  using Names = std::vector<std::string>;
  const std::string balance = " noise vmoe_importance 0.005 vmoe_load 0.005";
  EXPECT_EQ(routers("dense"), Names());
  EXPECT_EQ(routers("per_image"), Names{"router per_image superclass 0.3"});
  EXPECT_EQ(routers("end_to_end"), Names{"router per_image" + balance});
  EXPECT_EQ(routers("per_layer"),
            (Names{"blocks.4.mlp per_image superclass 0.3", "blocks.5.mlp per_image superclass 0.3"}));
  EXPECT_EQ(routers("per_token"),
            (Names{"blocks.4.mlp softmax_topk" + balance, "blocks.5.mlp softmax_topk" + balance}));
}

TEST(MobileVmoeSizes, M4_TheirHeadsAre6And3And3And2) {
  for (const Row& row : kRows) {
    VitOptions options;
    options.size = row.size;
    options = with_preset(options, kImagenet);
    EXPECT_EQ(options.depth, row.layers) << row.size;
    EXPECT_EQ(options.width, row.width) << row.size;
    EXPECT_EQ(options.heads, row.heads) << row.size;
    EXPECT_EQ(options.mlp_hidden(), 4 * row.width) << row.size;
  }
  VitOptions uneven;
  uneven.width = 64, uneven.heads = 3;
  EXPECT_EQ(testing::error_text<UsageError>([&] { with_preset(uneven, kImagenet); }),
            "[model] heads 3 does not divide width 64; choose a divisor");
}

TEST(MobileVmoeSizes, M5_LogitsOfOneAndOfSeveralImagesWithEitherPooling) {
  const torch::NoGradGuard no_grad;
  for (const std::string variant : {"dense", "per_image"})
    for (const std::string pool : {"class", "mean"}) {
      const auto model = make_model(resolved(variant, {"model.size=6x64", "model.pool=" + pool}), kImagenet);
      initialize(*model, 1);
      for (const int64_t images : {1, 3}) {
        const ModelOutput out = model->forward({test::random_tensor({images, 3, 224, 224}, 2, torch::kFloat)});
        EXPECT_EQ(out.logits.sizes(), (std::vector<int64_t>{images, 1000}));
        EXPECT_TRUE(out.logits.isfinite().all().item<bool>());
      }
    }
}

// Table 6.4: L = 1 .. 8 of DeiT-Ti/16.
TEST(MobileVmoeSizes, M11_ParametersByTheNumberOfMoeLayers) {
  const std::map<int64_t, int64_t> totals{{1, 8382184}, {2, 11045032}, {4, 16370728}, {6, 21696424}, {8, 27022120}};
  for (const auto& [layers, parameters] : totals) {
    std::string blocks;
    for (int64_t i = layers; i >= 1; --i) blocks += cat(blocks.empty() ? "" : ",", -i);
    EXPECT_EQ(total_cost(resolved("per_image", {"model.patch=16", "moe.blocks=[" + blocks + "]"})).parameters,
              parameters)
        << layers;
  }
}

// A hybrid: convolutions before the patches.
TEST(MobileVmoeSizes, AHybridWithAConvolutionalStemRoutesWholeImages) {
  const Json config = resolved("per_image", {"model.size=6x64", "model.stem=[16, 24, 32]"});
  const auto model = make_model(config, kImagenet);
  int64_t parameters = 0;
  for (const at::Tensor& p : model->parameters()) parameters += p.numel();
  EXPECT_EQ(total_cost(config).parameters, parameters);
  initialize(*model, 1);
  ModelInput input{test::random_tensor({4, 3, 224, 224}, 2, torch::kFloat), ForwardMode::training(), {1, 0}};
  input.info.target = torch::eye(10).slice(0, 0, 4);
  const ModelOutput out = model->forward(input);
  ASSERT_EQ(out.routings.size(), 1u);
  EXPECT_EQ(out.routings[0].layer, "router");
  EXPECT_EQ(out.routings[0].layout.per_image, 50);
  const at::Tensor expert = out.routings[0].expert.view({4, 50});
  EXPECT_TRUE(torch::equal(expert, expert.narrow(1, 0, 1).expand({4, 50})));
  ASSERT_EQ(out.losses.size(), 1u);
  out.logits.sum().backward();
  EXPECT_GT(model->named_parameters()["patch_embed.stem.0.conv1.weight"].grad().abs().max().item<double>(), 0);
}

}  // namespace sparsight::mobile_vmoe_sizes_test
