// What figures of attacked vision transformers measure and say, at their smallest scale and on generated images: 16 of
// them, models of one MoE layer with 4 experts of which each token has 2, PGD of 3 and AutoPGD of 4 steps.
#include "sparsight/papers/robust_moe/experiments/attack_cells.h"

#include <cmath>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/result_text.h"
#include "sparsight/reproduce/run_figure.h"
#include "tests/support/program.h"

namespace sparsight::robust_moe::attack_cells_test {
namespace {

FigureRun smoke_run(const std::string& folder, const Json& settings = Json::object()) {
  FigureRun run{Scale::smoke, "", folder};
  run.settings = settings;
  return run;
}

FigureOutcome run_smallest(const std::string& name, const testing::TemporaryFolder& folder,
                           const Json& settings = Json::object()) {
  FigureRequest request;
  request.run = smoke_run(folder.path(name), settings);
  return run_figure(find_figure(name), request);
}

double find_number(const FigureOutcome& outcome, const Json& row, const char* measure) {
  return outcome.table.mean(row, measure).value_or(NAN);
}

std::string join_notes(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

// Models of two training steps misclassify most images as they are. AutoPGD leaves these alone; to the largest loss it
// moves every image, as PGD does, so that the change of the moved images is that of all.
TEST(AttackCells, AutoPgdToTheLargestLossMovesEveryImage) {
  const testing::TemporaryFolder folder;
  const FigureOutcome outcome = run_smallest("robust_moe/f4b", folder);
  FigureRun run = outcome.run;
  run.job_folder = folder.path("job");
  const AttackCells cells(CellOptions(Scale::smoke, VisionData::cifar100), run);
  const auto layer = [&](const char* attack) {
    const Json measured = cells.measure({kMoeModel, kStandard, 4}, 0, {.name = attack, .epsilon = 8});
    EXPECT_GT(measured.at("clean_error").get<double>(), 0);
    return measured.at("layers")[0];
  };
  const Json largest = layer(kApgdLoss), usual = layer(kApgd), pgd = layer(kPgd);
  EXPECT_GT(largest.at("change").get<double>(), 0);
  EXPECT_EQ(largest.at("change"), largest.at("change_moved"));
  EXPECT_EQ(pgd.at("change"), pgd.at("change_moved"));
  EXPECT_LT(usual.at("change").get<double>(), usual.at("change_moved").get<double>());
  // The figure shows the former beside PGD.
  const Json row = {{"layer", "layer 1"}, {"epsilon", 8.0}};
  EXPECT_DOUBLE_EQ(find_number(outcome, row, "change"), largest.at("change").get<double>());
  EXPECT_DOUBLE_EQ(find_number(outcome, row, "change_pgd"), pgd.at("change").get<double>());
  EXPECT_TRUE(says(join_notes(outcome_notes(outcome)), "the point of the largest loss of every image"));
}

TEST(AttackCells, A60_NotesHaveTheSettingsOfTheRun) {
  for (const char* name :
       {"robust_moe/f1", "robust_moe/f2", "robust_moe/f3_aux", "robust_moe/f3_experts", "robust_moe/f4a",
        "robust_moe/f4b", "robust_moe/cost", "robust_moe/sweep", "robust_moe/transfer", "robust_moe/damage"}) {
    FigureOutcome outcome;
    outcome.figure = &find_figure(name);
    outcome.run = smoke_run("nowhere");
    const std::string smoke = join_notes(outcome_notes(outcome));
    for (const char* part :
         {"PGD: 3 steps of 2.5/3 epsilon", "3 steps of epsilon/3", "AutoPGD: 4 steps", "PGD of 2 steps at 8/255",
          "No capacity limit", "k = 2 experts", "1.5 times as wide", "2 blocks and width 16", "for 1 epochs"})
      EXPECT_TRUE(says(smoke, part)) << name << " does not say " << part << ": " << smoke;
    for (const char* part : {"40 steps", "100 steps", "10 steps"}) EXPECT_FALSE(says(smoke, part)) << name << smoke;
    outcome.run.settings = {{"adversarial_epsilon", 4}, {"capacity", 1.5}, {"k", 1}, {"attack_batch", 7}};
    const std::string set = join_notes(outcome_notes(outcome));
    for (const char* part :
         {"PGD of 2 steps at 4/255", "factor 1.5 in training", "(7 at most", "k = 1 experts", " 1 times as wide"})
      EXPECT_TRUE(says(set, part)) << name << " does not say " << part << ": " << set;
    EXPECT_FALSE(says(set, "No capacity limit")) << name;
  }
  FigureOutcome generated;
  generated.figure = &find_figure("robust_moe/smoke");
  generated.run = smoke_run("nowhere", {{"pgd_steps", 5}});
  EXPECT_TRUE(says(join_notes(outcome_notes(generated)), "PGD: 5 steps of epsilon/5"));
}

// x of n = 16 images are errors: with z = 1.95996, p = x / n the interval is (p + z²/2n -+ z sqrt(p (1 - p) / n +
// z²/4n²)) / (1 + z²/n). And half of an even share for each expert: at least half of the assignments is dropped.
TEST(AttackCells, A60_ErrorsHaveWilsonIntervalsAndDropRates) {
  for (const char* name : {"robust_moe/f1", "robust_moe/f4a"}) {
    const testing::TemporaryFolder folder;
    const FigureOutcome outcome = run_smallest(name, folder, {{"capacity", 0.5}});
    ASSERT_TRUE(outcome.failed.empty());
    for (const ResultRow& row : outcome.table.rows) {
      constexpr double n = 16, z = 1.959963985;
      const double p = find_number(outcome, row.settings, "robust_error") / 100;
      const double centre = p + z * z / (2 * n), half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
      EXPECT_NEAR(find_number(outcome, row.settings, "robust_low"), 100 * (centre - half) / (1 + z * z / n), 1e-6);
      EXPECT_NEAR(find_number(outcome, row.settings, "robust_high"), 100 * (centre + half) / (1 + z * z / n), 1e-6);
      for (const char* dropped : {"dropped", "attacked_dropped"}) {
        const auto share = outcome.table.mean(row.settings, dropped);
        const bool routed = says(row.settings.at("model"), "MoE");
        ASSERT_EQ(share.has_value(), routed) << row.settings;
        if (routed) {
          EXPECT_GE(*share, 0.5) << row.settings;
        }
      }
    }
  }
}

// The change of independent uniform choices of 4 experts: 3/4 for one expert of each token, 0.611111 for two.
TEST(AttackCells, A52_TheSweepHasOtherNumbersOfExpertsAndCapacities) {
  const testing::TemporaryFolder folder;
  const FigureOutcome outcome =
      run_smallest("robust_moe/sweep", folder, {{"eval_k", {1, 2}}, {"eval_capacity", {0.5}}});
  ASSERT_TRUE(outcome.failed.empty());
  const auto of = [&](int64_t k, double capacity, const char* measure) {
    const Json row = {{"model", kMoeModel}, {"training", kStandard},       {"k", k},        {"capacity", capacity},
                      {"attack", kPgd},     {"attacked", "cross entropy"}, {"epsilon", 8.0}};
    return find_number(outcome, row, measure);
  };
  EXPECT_NEAR(of(1, 0, "change") / of(1, 0, "of_chance"), 0.75, 1e-9);
  EXPECT_NEAR(of(2, 0, "change") / of(2, 0, "of_chance"), 0.611111, 1e-6);
  EXPECT_LT(of(1, 0, "gflop"), of(2, 0, "gflop"));
  EXPECT_EQ(of(2, 0, "attacked_dropped"), 0);
  EXPECT_GE(of(2, 0.5, "attacked_dropped"), 0.5);
  EXPECT_EQ(outcome.table.axis_values("k").size(), 3u);  // a dense model has none
  for (const ResultRow& found : outcome.table.rows)
    EXPECT_EQ(found.settings.at("k").is_null(), found.settings.at("model") != kMoeModel);
}

TEST(AttackCells, TransfersToItselfAreTheAttackAndUnlimitedBatchesTakeNoDamage) {
  const testing::TemporaryFolder folder;
  const FigureOutcome transfers = run_smallest("robust_moe/transfer", folder);
  ASSERT_TRUE(transfers.failed.empty());
  ASSERT_EQ(transfers.table.rows.size(), 9u);  // one epsilon above 0
  const FigureOutcome errors = run_smallest("robust_moe/f1", folder);
  for (const ResultRow& row : transfers.table.rows) {
    const std::string source = row.settings.at("source"), target = row.settings.at("target");
    const auto own = errors.table.mean({{"model", target}, {"epsilon", 8.0}}, "robust_error");
    EXPECT_EQ(transfers.table.mean(row.settings, source == target ? "robust_error" : "own_error"), own);
  }
  const FigureOutcome damage = run_smallest("robust_moe/damage", folder);
  ASSERT_TRUE(damage.failed.empty());
  ASSERT_EQ(damage.table.rows.size(), 3u);
  for (const ResultRow& row : damage.table.rows) {
    EXPECT_EQ(find_number(damage, row.settings, "others"), 14);  // two batches of eight
    if (row.settings.at("capacity") == 0.0) {
      for (const char* key : {"changed", "lost", "dropped_after"}) EXPECT_EQ(find_number(damage, row.settings, key), 0);
    } else {
      EXPECT_GT(find_number(damage, row.settings, "dropped_after"), 0);
    }
  }
}

}  // namespace sparsight::robust_moe::attack_cells_test
