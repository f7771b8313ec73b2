// The cascade of attacks: bookkeeping, versions, warnings.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/attacks/cascade.h"
#include "sparsight/attacks/cascade_warnings.h"
#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/core/random.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::cascade_test {
namespace {

// A network of random weights, 5 classes, on images [2,4,4].
at::Tensor network(const at::Tensor& x) {
  static const at::Tensor first = test::random_tensor({12, 32}, 3), second = test::random_tensor({5, 12}, 4);
  return (x.flatten(1) - 0.5).matmul(first.t()).sin().matmul(second.t());
}

// Correct but for every sixth.
AttackBatch images(int64_t count) {
  const at::Tensor x = (0.5 + 0.2 * test::random_tensor({count, 2, 4, 4}, 8)).clamp(0, 1);
  at::Tensor labels = network(x).argmax(1);
  for (int64_t i = 0; i < count; i += 6) labels[i] = (labels[i] + 1) % 5;
  return {x, {labels}};
}

// Shortened, so that tests are fast.
std::vector<CascadeStage> short_stages(const std::string& version) {
  std::vector<CascadeStage> stages = cascade_stages(version);
  for (CascadeStage& stage : stages) stage.settings[stage.attack == "square" ? "queries" : "steps"] = 12;
  return stages;
}

bool mentions(const std::vector<std::string>& warnings, const std::string& text) {
  for (const std::string& warning : warnings)
    if (warning.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST(Cascade, A33_RobustAccuracyFallsThroughTheAttacks) {
  for (const char* version : {"standard", "plus"}) {
    const AttackBatch batch = images(40);
    const AttackContext context{{Norm::linf, .02, {}}, 7};
    AttackedFunction model(network);
    const CascadeResult result = run_cascade(model, batch, context, short_stages(version), 16);
    EXPECT_DOUBLE_EQ(result.clean_accuracy(), 33.0 / 40);
    int64_t robust = 33;
    AttackCost cost;
    for (const StageResult& stage : result.stages) {
      EXPECT_EQ(stage.robust_before, robust) << stage.name;
      EXPECT_GE(stage.gained, 0);
      robust -= stage.gained;
      cost.queries += stage.cost.queries;
      cost.gradients += stage.cost.gradients;
    }
    EXPECT_DOUBLE_EQ(result.robust_accuracy(), static_cast<double>(robust) / 40);
    EXPECT_LT(robust, 33);
    EXPECT_GT(robust, 0);
    EXPECT_FALSE((result.robust & ~result.clean).any().item<bool>());
    EXPECT_GT(result.cost.queries, cost.queries);  // and those of the first pass
    EXPECT_EQ(model.cost().queries, result.cost.queries);
    // What was fooled is so at its image, and the rest is untouched.
    check_perturbation(result.pixels, batch.pixels, context.threat, true);
    const at::Tensor fooled = result.clean & ~result.robust;
    EXPECT_TRUE(torch::equal(classified_correctly(network(result.pixels), batch.labels.label), result.robust));
    EXPECT_TRUE(torch::equal((result.pixels != batch.pixels).flatten(1).any(1), fooled));
  }
}

TEST(Cascade, A33_ResultsDoNotDependOnTheBatchSize) {
  const AttackBatch batch = images(20);
  const AttackContext context{{Norm::linf, .02, {}}, 7};
  AttackedFunction model(network);
  const CascadeResult whole = run_cascade(model, batch, context, short_stages("standard"), 100);
  const CascadeResult single = run_cascade(model, batch, context, short_stages("standard"), 1);
  EXPECT_TRUE(torch::equal(whole.robust, single.robust));
  EXPECT_TRUE(torch::allclose(whole.pixels, single.pixels, 0, 1e-9));
  for (size_t i = 0; i < whole.stages.size(); ++i) EXPECT_EQ(whole.stages[i].gained, single.stages[i].gained);
}

TEST(Cascade, A33_StagesOfTheVersions) {
  const auto names = [](const char* version) {
    std::string all;
    for (const CascadeStage& stage : cascade_stages(version)) {
      EXPECT_NE(attacks().make(stage.attack, stage.settings, stage.name, {}), nullptr);
      all += stage.name + " " + stage.settings.dump() + ";";
    }
    return all;
  };
  EXPECT_EQ(
      names("standard"),
      "apgd-ce {\"loss\":\"cross_entropy\",\"restarts\":1,\"passes\":1};apgd-t {\"targets\":9};fab-t {\"targets\":9};"
      "square {\"queries\":5000};");
  EXPECT_EQ(names("plus"),
            "apgd-ce {\"loss\":\"cross_entropy\",\"restarts\":5,\"passes\":1};apgd-dlr "
            "{\"loss\":\"dlr\",\"restarts\":5,\"passes\":1};fab {\"restarts\":5};square {\"queries\":5000};apgd-t "
            "{\"targets\":9};fab-t {\"targets\":9};");
  EXPECT_EQ(names("rand"),
            "apgd-ce {\"loss\":\"cross_entropy\",\"restarts\":1,\"passes\":20};apgd-dlr "
            "{\"loss\":\"dlr\",\"restarts\":1,\"passes\":20};");
  EXPECT_NE(testing::error_text<UsageError>([] { cascade_stages("fast"); }).find("standard, plus, or rand"),
            std::string::npos);
}

TEST(Cascade, WarnsOfModelsWhoseRobustnessItCannotMeasure) {
  const AttackBatch batch = images(10);
  AttackBatch numbered = batch;
  numbered.image = torch::arange(10, torch::kLong);
  AttackedFunction plain(network);
  // 5 classes: targeted attacks want 9 others.
  const std::vector<std::string> few = model_warnings(plain, numbered, cascade_stages("standard"));
  ASSERT_EQ(few.size(), 1u);
  EXPECT_TRUE(mentions(few, "5 classes"));
  EXPECT_TRUE(model_warnings(plain, numbered, cascade_stages("rand")).empty());
  AttackedFunction probable([](const at::Tensor& x) { return network(x).softmax(1); });
  EXPECT_TRUE(mentions(model_warnings(probable, numbered, cascade_stages("rand")), "probabilities"));
  AttackedFunction rounded([](const at::Tensor& x) { return network(x) * 0 + network(x).round(); });
  EXPECT_TRUE(mentions(model_warnings(rounded, numbered, cascade_stages("rand")), "gradient of 0"));
  AttackedFunction noisy(
      [](const at::Tensor& x, const AttackPass& pass) {
        ModelOutput output;
        output.logits = network(x) + RandomStream(1, "noise", pass.step).uniform() * torch::arange(5);
        return output;
      },
      true);
  EXPECT_TRUE(mentions(model_warnings(noisy, numbered, cascade_stages("standard")), "passes differ"));
  EXPECT_FALSE(mentions(model_warnings(noisy, numbered, cascade_stages("rand")), "passes differ"));
}

// Gradients that say nothing, as of a model that rounds its logits: only Square fools it, which the result says.
TEST(Cascade, WarnsWhereOnlyAnAttackWithoutGradientsSucceeds) {
  AttackedFunction masked([](const at::Tensor& x) { return x.flatten(1).narrow(1, 0, 5) * 0 + network(x).detach(); });
  const AttackContext context{{Norm::linf, .1, {}}, 1};
  std::vector<CascadeStage> stages = short_stages("standard");
  stages[0].settings["start"] = "none";
  stages = {stages[0], stages[3]};
  stages[1].settings["queries"] = 100;
  const CascadeResult result = run_cascade(masked, images(20), context, stages, 20);
  EXPECT_EQ(result.stages[0].gained, 0);
  EXPECT_GT(result.stages[1].gained, 0);
  EXPECT_TRUE(mentions(result.warnings, "square fooled"));
  const Json json = to_json(result, context);
  EXPECT_EQ(json["stages"][1]["gained"], result.stages[1].gained);
  EXPECT_EQ(json["range"], "0..1");
  EXPECT_EQ(json["images"], 20);
}

}  // namespace sparsight::cascade_test
