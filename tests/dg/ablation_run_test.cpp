#include "sparsight/dg/ablation_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/jobs/plan.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::ablation_run_test {
namespace {

DgAblation on_pacs() {
  DgAblation ablation;
  ablation.run.set = "pacs";
  return ablation;
}

const AblationRow& row_named(const std::vector<AblationRow>& rows, const std::string& factor,
                             const std::string& setting) {
  const auto found = std::ranges::find_if(
      rows, [&](const AblationRow& row) { return row.factor == factor && row.setting == setting; });
  if (found == rows.end()) throw std::runtime_error("no row " + factor + " " + setting);
  return *found;
}

std::string result_line(int64_t environment, double in, const DgRun& run) {
  nlohmann::ordered_json args = dg_arguments(run);
  args["test_envs"] = {environment};
  nlohmann::ordered_json line{{"args", args}, {"step", 0}};
  for (int64_t e = 0; e < 4; ++e) line[cat("env", e, "_in_acc")] = line[cat("env", e, "_out_acc")] = in;
  return line.dump() + "\n";
}

}  // namespace

// One row per setting; those that are the baseline share its runs. Parameters are those of section 2, for 7 classes:
// 384 * 7 + 7 = 2695 of the head. MACs are those of section 7.4 with a head of 7 classes instead of 1000.
TEST(AblationRun, G57_OneRowPerSettingWithItsCost) {
  const std::vector<AblationRow> rows = ablation_rows(on_pacs());
  EXPECT_EQ(rows.size(), 1u + 2 + 2 + 2 + 5 + 3 + 2 + 2 + 2 + 3);  // no file of dense weights, so no upcycled experts
  EXPECT_EQ(rows[0].factor, "baseline");
  EXPECT_EQ(rows[0].cost.parameters, 33'681'538 + 2695);
  for (const auto& [factor, setting] : {std::pair{"router", "cosine"},
                                        {"temperature", "learned"},
                                        {"placement", "last two"},
                                        {"experts", "6"},
                                        {"k", "1"},
                                        {"noise", "on"},
                                        {"importance_loss", "on"},
                                        {"load_loss", "on"},
                                        {"size", "small"}})
    EXPECT_TRUE(row_named(rows, factor, setting).variation.empty() || std::string(factor).ends_with("_loss")) << factor;
  EXPECT_EQ(row_named(rows, "size", "tiny").cost.parameters, 8'585'026 + 192 * 7 + 7);
  EXPECT_EQ(row_named(rows, "size", "base").cost.parameters, 133'419'778 + 768 * 7 + 7);
  EXPECT_EQ(row_named(rows, "router", "linear").cost.parameters, rows[0].cost.parameters - 2 * (100'097 - 2304));
  EXPECT_EQ(row_named(rows, "experts", "2").cost.parameters, rows[0].cost.parameters - 2 * 4 * (1'181'568 + 256));
  EXPECT_NEAR(static_cast<double>(rows[0].cost.multiply_adds + 384 * 993) / 1e9, 4.638, 0.0005);
  EXPECT_NEAR(static_cast<double>(row_named(rows, "k", "2").cost.multiply_adds + 384 * 993) / 1e9, 5.103, 0.0005);
  EXPECT_NEAR(static_cast<double>(row_named(rows, "placement", "every two").cost.multiply_adds + 384 * 993) / 1e9,
              4.717, 0.0005);
}

TEST(AblationRun, G57_SeedsArePairedAndRunsShared) {
  DgAblation ablation = on_pacs();
  ablation.factors = ablations_named({"router", "k"});
  ablation.factors.push_back(own_ablation("router.k=1,2"));
  const std::vector<AblationRow> rows = ablation_rows(ablation);
  ASSERT_EQ(rows.size(), 1u + 2 + 3 + 2);
  const JobList list = ablation_jobs(ablation, rows);
  EXPECT_EQ(list.settings.size(), 4u * 3 * 4);  // baseline, linear, k = 2, k = 4; trials; environments
  for (const AblationRow& row : rows)           // of the same trial and environment
    for (int64_t trial = 0; trial < 3; ++trial) {
      DgRun run = ablation.run;
      run.model = "gmoe", run.variation = row.variation, run.trial_seed = trial;
      DgRun of_baseline = run;
      of_baseline.variation = {};
      EXPECT_EQ(dg_config(run)["run"]["seed"], dg_config(of_baseline)["run"]["seed"]);
    }
  ablation.test_envs = {1};
  EXPECT_EQ(ablation_jobs(ablation, rows).settings.size(), 4u * 3);
}

TEST(AblationRun, ABillionTrialsArePlannedAtOnce) {
  DgAblation ablation = on_pacs();
  ablation.factors = ablations_named({"router"});
  ablation.trials = 1'000'000'000;
  EXPECT_EQ(plan_jobs(ablation_jobs(ablation, ablation_rows(ablation)), nullptr).jobs, int64_t{2} * 4 * 1'000'000'000);
  ablation.test_envs = {1, 1};
  EXPECT_THROW(ablation_jobs(ablation, ablation_rows(ablation)), UsageError);
  EXPECT_THROW(ablations_named({"router", "router"}), UsageError);
}

// What the new router does not have is left out, not refused.
TEST(AblationRun, AVariationMayNameAnotherComponent) {
  DgRun run;
  run.set = "pacs", run.model = "gmoe", run.overrides = {"router.width=64"};
  run.variation = {"router.name=softmax_topk"};
  const Json config = dg_config(run);
  EXPECT_EQ(config["router"]["name"], "softmax_topk");
  EXPECT_EQ(config["router"]["k"], 1);
  EXPECT_FALSE(config["router"].contains("width"));
  run.variation = {}, run.overrides = {"router.name=hash"};  // which has no k
  EXPECT_EQ(dg_config(run)["router"]["name"], "hash");
}

// A file of dense weights makes their factor meaningful.
TEST(AblationRun, G57_UpcycledOrRandomExperts) {
  DgAblation ablation = on_pacs();
  ablation.factors = ablations_named({"initial_experts"});
  ablation.run.overrides = {"train.init_from=dense.safetensors"};
  const std::vector<AblationRow> rows = ablation_rows(ablation);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[1].variation.empty());
  EXPECT_EQ(rows[2].variation, (std::vector<std::string>{"train.upcycle=random"}));
}

TEST(AblationRun, RefusesWhatCannotBeBuilt) {
  DgAblation ablation = on_pacs();
  ablation.run.overrides = {"moe.experts=2"};
  ablation.factors = ablations_named({"k"});
  const std::string message = testing::error_text([&] { ablation_rows(ablation); });
  EXPECT_NE(message.find("k 4: "), std::string::npos) << message;
  EXPECT_NE(message.find("--only"), std::string::npos) << message;
  ablation.run.model = "resnet50", ablation.run.overrides = {};
  EXPECT_NE(testing::error_text([&] { ablation_rows(ablation); }).find("--model gmoe"), std::string::npos);
}

// Trials of the baseline have 50 and 60 %, of the linear router 52 and 64 %: +2 and +4, mean 3, deviation sqrt(2),
// standard error 1; t of 97.5 % with one degree of freedom is 12.706.
TEST(AblationRun, G57_TheTableHasTheDifferenceOverPairs) {
  DgAblation ablation = on_pacs();
  ablation.trials = 2, ablation.test_envs = {0};
  ablation.factors = ablations_named({"router"});
  const std::vector<AblationRow> rows = ablation_rows(ablation);
  const testing::TemporaryFolder folder;
  const JobStore store(folder.path("runs"), "test");
  for (const Json& job : ablation_jobs(ablation, rows).settings) {
    const bool linear = job.contains("variation");
    const double in = job["trial_seed"] == 0 ? (linear ? .52 : .50) : (linear ? .64 : .60);
    DgRun run = ablation.run;
    run.model = "gmoe", run.trial_seed = job["trial_seed"];
    std::filesystem::create_directories(store.job_folder(job) + "/run");
    write_file_atomically(store.job_folder(job) + "/run/results.jsonl", result_line(0, in, run));
  }
  const DgTable table = ablation_table(ablation, rows, store);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.columns, (std::vector<std::string>{"A", "Avg"}));
  EXPECT_EQ(table.rows[0].algorithm, "baseline");
  EXPECT_EQ(table.rows[0].facts[0].text, "");
  EXPECT_NEAR(table.rows[0].cells[1]->mean, 55, 1e-9);
  EXPECT_EQ(table.rows[1].algorithm, "router: cosine");
  EXPECT_NEAR(table.rows[1].cells[1]->mean, 55, 1e-9);
  EXPECT_EQ(table.rows[2].facts[0].text, "+3.0 (-9.7 to +15.7)");
  const std::string csv = formatted({table}, TableFormat::csv);
  EXPECT_NE(csv.find("PACS,training-domain validation,router: linear,parameters,33488647,\n"), std::string::npos)
      << csv;
  EXPECT_NE(formatted({table}, TableFormat::latex).find("\\begin{tabular}{lrrrrrr}"), std::string::npos);
  // A setting without runs is open.
  ablation.factors = ablations_named({"router", "k"});
  const DgTable open = ablation_table(ablation, ablation_rows(ablation), store);
  EXPECT_NE(formatted({open}, TableFormat::text).find("| k: 4 |  |  |  |"), std::string::npos);
}

}  // namespace sparsight::ablation_run_test
