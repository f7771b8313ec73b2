// [[model.layer]]: a dense vision transformer that costs as much as k experts.
#include "sparsight/models/dense_layers.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/program.h"
#include "tests/support/program_answers.h"
#include "tests/support/random_tensor.h"

namespace sparsight::dense_layers_test {
namespace {

constexpr ImageShape kImagenet{3, 224, 224, 1000}, kSmall{1, 8, 8, 3};

Json resolved(const std::vector<std::string>& settings) {
  Config config = Config::from_text("", "");
  for (const std::string& setting : settings) config.set(setting);
  return resolve(config, config_sections());
}

std::vector<PartCost> deit_tiny(const std::vector<std::string>& more) {
  std::vector<std::string> settings{"model.name=vit", "model.size=12x192", "model.patch=16"};
  settings.insert(settings.end(), more.begin(), more.end());
  return model_cost(resolved(settings), kImagenet, {cost_convention("multiply_adds"), 1});
}

Json small(const std::string& layers) {
  return resolved(
      {"model.name=vit", "model.width=8", "model.depth=3", "model.heads=2", "model.patch=4", "model.layer=" + layers});
}

std::string refusal(const std::string& layers) {
  return testing::error_text<UsageError>([&] { make_model(small(layers), kSmall); });
}

}  // namespace

// Specification 6.5, 3d: DeiT-Ti/16 with a hidden width of 4 k D in the last two layers.
TEST(DenseLayers, M40_TheDenseCounterpartCostsAsMuchAsTheExperts) {
  const Cost two = total(deit_tiny({"model.layer=[{blocks=[-2,-1],hidden=1536}]"}));
  EXPECT_EQ(two.parameters, 6308776);
  EXPECT_EQ(two.active_parameters, 6308776);
  EXPECT_NEAR(static_cast<double>(two.multiply_adds) / 1e6, 1369.88, 0.00501);
  for (const int64_t k : {1, 2, 3, 5, 10}) {
    const Cost dense = total(deit_tiny({cat("model.layer=[{blocks=[-2,-1],hidden=", 768 * k, "}]")}));
    int64_t without_router = 0;
    for (const PartCost& part :
         deit_tiny({"moe.blocks=[-2,-1]", "moe.experts=10", "router.name=per_image", cat("router.k=", k)}))
      if (part.part != "router") without_router += part.cost.multiply_adds;
    EXPECT_EQ(dense.multiply_adds, without_router) << k;
  }
}

TEST(DenseLayers, BlocksHaveTheirOwnHiddenWidths) {
  const Json config = small("[{blocks=[-1],hidden=40},{blocks=[0],hidden=5}]");
  const auto model = make_model(config, kSmall);
  initialize(*model, 1);
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters["blocks.0.mlp.fc1.weight"].size(0), 5);
  EXPECT_EQ(parameters["blocks.1.mlp.fc1.weight"].size(0), 32);
  EXPECT_EQ(parameters["blocks.2.mlp.fc1.weight"].size(0), 40);
  EXPECT_EQ(parameters["blocks.2.mlp.fc2.weight"].size(1), 40);
  int64_t count = 0;
  for (const at::Tensor& p : model->parameters()) count += p.numel();
  EXPECT_EQ(total(model_cost(config, kSmall)).parameters, count);
  // Experts replace the MLP of their block.
  const Json routed = [&] {
    Json changed = config;
    changed["moe"]["blocks"] = Json{2};
    return changed;
  }();
  EXPECT_EQ(make_model(routed, kSmall)->named_parameters()["blocks.2.mlp.experts.w1"].size(2), 40);
}

TEST(DenseLayers, PackedAndFromACheckpointTheyComputeTheSame) {
  const testing::TemporaryFolder folder;
  const auto model = make_model(small("[{blocks=[1],hidden=72}]"), kSmall);
  initialize(*model, 1);
  const at::Tensor images = test::random_tensor({4, 1, 8, 8}, 3, torch::kFloat);
  const torch::NoGradGuard no_grad;
  const at::Tensor logits = model->forward({images}).logits;
  write_checkpoint(folder.path("c.safetensors"),
                   {named_weights(*model), {}, model->definition()->config, Json::object()});
  const Checkpoint saved = read_checkpoint(folder.path("c.safetensors"));
  const auto loaded = make_model(saved.config, kSmall);
  LoadOptions strict;
  strict.strict = true;
  load_weights(*loaded, saved.weights, strict);
  EXPECT_TRUE(torch::equal(loaded->forward({images}).logits, logits));
  EXPECT_TRUE(test::near(test::program_logits(*loaded, images), logits, 1e-5));
}

TEST(DenseLayers, MistakesAreOneLine) {
  EXPECT_EQ(refusal("[{hidden=3}]"),
            "an entry of model.layer needs blocks, as in {blocks = [-2, -1], hidden = 1536}; got {\"hidden\":3}");
  EXPECT_NE(refusal("[{blocks=[0]}]").find("needs hidden"), std::string::npos);
  EXPECT_EQ(refusal("[{blocks=[3],hidden=3}]"),
            "[[model.layer]] blocks: there is no block 3 in a model of 3 blocks; allowed are -3 to 2");
  EXPECT_NE(refusal("[{blocks=[2],hidden=3},{blocks=[-1],hidden=4}]").find("has block 2 twice"), std::string::npos);
  EXPECT_NE(refusal("[{blocks=[2],hidden=0}]").find("model.layer.hidden"), std::string::npos);
  EXPECT_NE(refusal("[{blocks=[2],hiden=4}]").find("did you mean"), std::string::npos);
}

}  // namespace sparsight::dense_layers_test
