// The sweep of attacks over vision transformers, at its smallest scale and on generated images.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/papers/register_figures.h"
#include "sparsight/papers/robust_moe/experiments/attack_cells.h"
#include "sparsight/reproduce/result_charts.h"
#include "sparsight/reproduce/run_figure.h"
#include "tests/support/program.h"

namespace sparsight::robust_moe::vision_cells_test {
namespace {

FigureOutcome run_smallest(const std::string& name, const testing::TemporaryFolder& folder,
                           const Json& settings = Json::object()) {
  FigureRequest request;
  request.run = {Scale::smoke, "", folder.path(name)};
  request.run.settings = settings;
  return run_figure(find_figure(name), request);
}

int64_t files_in(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return std::distance(begin(files), end(files));
}

}  // namespace

TEST(AttackCells, A52_TheSweepHasARowWithAllMeasuresForEachCell) {
  const testing::TemporaryFolder folder;
  const FigureOutcome outcome = run_smallest("robust_moe/sweep", folder);
  EXPECT_TRUE(outcome.failed.empty());
  // Two epsilons of 6 models x 3 attacks, and of the two V-MoEs x 2 attacks on the importance loss too, and under PGD
  // with one expert of each token, and with a capacity limit.
  ASSERT_EQ(outcome.table.rows.size(), 2u * (18 + 4 + 2 + 2));
  for (const char* key : {"importance_cv2", "attacked_importance_cv2", "attacked_dropped", "change_moved"})
    EXPECT_TRUE(std::ranges::any_of(outcome.table.measures, [&](const Measure& m) { return m.key == key; })) << key;
  for (const ResultRow& row : outcome.table.rows)
    for (size_t m = 0; m < row.mean.size(); ++m) {
      const std::string& key = outcome.table.measures[m].key;
      const bool of_routing = key.starts_with("change_") || key.starts_with("attacked_") || key.starts_with("re") ||
                              key == "change" || key == "of_chance" || key == "dropped" || key == "entropy" ||
                              key.ends_with("_cv2");
      if (!of_routing || key == "attacked_loss") {
        EXPECT_TRUE(row.mean[m]) << key;
      }
      const bool routed = row.settings.at("model") == kMoeModel;
      // Undefined if no token changed, or no image.
      const bool defined_if_changed = key.starts_with("redundancy") || key == "change_moved";
      if (of_routing && key != "attacked_loss" && !defined_if_changed) {
        EXPECT_EQ(row.mean[m].has_value(), routed) << key;
      }
    }
}

TEST(AttackCells, FiguresShareModelsAndCells) {
  const testing::TemporaryFolder folder;
  run_smallest("robust_moe/f1", folder);
  const std::string models = folder.path("robust_moe/models");
  const int64_t after = files_in(models);
  EXPECT_EQ(after, 6 + 6 * 2 * 2);  // models, and cells of two attacks at two epsilons
  run_smallest("robust_moe/f2", folder);
  EXPECT_EQ(files_in(models), after);
  // Other settings train other models.
  run_smallest("robust_moe/f2", testing::TemporaryFolder(), {{"width", 20}, {"heads", 2}});
}

TEST(AttackCells, A58_ChartsShowErrorAndRoutingAgainstEpsilonAndErrorAgainstCost) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"robust_moe/f1", "robust_moe/f2", "robust_moe/cost"})
    EXPECT_FALSE(result_charts(run_smallest(name, folder)).empty()) << name;
}

// One position of a CNN's last map costs K experts; the wide MLP has K times the hidden width.
TEST(VisionModels, CnnsOfEqualCostFollowTheNumberOfChoices) {
  VisionOptions options = vision_options(Scale::paper, VisionData::cifar10);
  const FigureRun run{Scale::paper, "data", "nowhere"};
  const double dense = vision_cost({kDenseModel, kStandard}, options, run).gflop;
  for (const int64_t k : {1, 2, 4}) {
    options.k = k;
    const double wide = vision_cost({kWideModel, kStandard}, options, run).gflop;
    EXPECT_NEAR(vision_cost({kMoeModel, kStandard, 8}, options, run).gflop / wide, 1, .01) << k;
    // 16 positions, width 256, hidden width 512, two matrices, 2 operations each.
    EXPECT_NEAR(wide - dense, static_cast<double>(k - 1) * 16 * 256 * 512 * 2 * 2 / 1e9, 1e-6) << k;
  }
}

TEST(AttackCells, FiguresOnCifar10AttackCnnsWithOneLayer) {
  const testing::TemporaryFolder folder;
  const FigureOutcome routing = run_smallest("robust_moe/f2_cifar10", folder);
  EXPECT_EQ(routing.table.axis_values("layer"), (std::vector<Json>{"moe", "moe, adversarial"}));
  const FigureOutcome parts = run_smallest("robust_moe/parts_cifar10", folder);
  EXPECT_TRUE(parts.failed.empty());
  for (const ResultRow& row : parts.table.rows) EXPECT_TRUE(parts.table.mean(row.settings, "robust_error"));
}

TEST(VisionModels, A57_OperationsBarelyGrowWithTheNumberOfExpertsAndParametersDo) {
  const VisionOptions options = vision_options(Scale::paper, VisionData::cifar100);
  const FigureRun run{Scale::paper, "data", "nowhere"};
  double parameters = 0;
  const double two = vision_cost({kMoeModel, kStandard, 2}, options, run).gflop;
  for (const int64_t experts : {2, 4, 8, 16, 32}) {
    const VisionCost cost = vision_cost({kMoeModel, kStandard, experts}, options, run);
    EXPECT_LT(cost.gflop, 1.04 * two);
    EXPECT_GE(cost.gflop, two);
    EXPECT_GT(cost.parameters, parameters);
    parameters = cost.parameters;
  }
  const double dense = vision_cost({kDenseModel, kStandard}, options, run).gflop;
  const double wide = vision_cost({kWideModel, kStandard}, options, run).gflop;
  const double routed = vision_cost({kMoeModel, kStandard, 8}, options, run).gflop;
  EXPECT_NEAR(routed / wide, 1, .02);
  EXPECT_GT(routed / dense, 1.2);
}

// All MLPs of a V-MoE have (K + 1) / 2 times the multiply-adds of the ViT it is built on: 1, 1.5 and 2.5 times for K =
// 1, 2 and 4. The widened ViT has them too, so both cost the same.
TEST(VisionModels, A57_TheDenseModelOfEqualCostFollowsTheNumberOfChoices) {
  VisionOptions options = vision_options(Scale::paper, VisionData::cifar100);
  const FigureRun run{Scale::paper, "data", "nowhere"};
  const double dense = vision_cost({kDenseModel, kStandard}, options, run).gflop;
  double mlps_of_two = 0;
  for (const auto& [k, mlps] : {std::pair<int64_t, double>{1, 0}, {2, 0.5}, {4, 1.5}}) {
    options.k = k;
    const double wide = vision_cost({kWideModel, kStandard}, options, run).gflop;
    EXPECT_NEAR(vision_cost({kMoeModel, kStandard, 8}, options, run).gflop / wide, 1, .02) << k;
    if (k == 2) mlps_of_two = wide - dense;
    if (k == 1) {
      EXPECT_DOUBLE_EQ(wide, dense);
    }
    if (k == 4) {
      EXPECT_NEAR((wide - dense) / mlps_of_two, mlps / 0.5, 1e-9);
    }
  }
}

}  // namespace sparsight::robust_moe::vision_cells_test
