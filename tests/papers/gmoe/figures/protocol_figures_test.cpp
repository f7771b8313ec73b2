// The figures by the protocol of DomainBed: what their rows are, against the runs that they keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/dg/results/result_table.h"
#include "sparsight/dg/sweep.h"
#include "sparsight/papers/gmoe/figures/mnist_protocol.h"
#include "sparsight/papers/gmoe/figures/protocol_data.h"
#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/result_text.h"
#include "sparsight/reproduce/run_figure.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::gmoe::protocol_figures_test {
namespace {

namespace fs = std::filesystem;

FigureOutcome smoke(const char* name, const std::string& folder, const Json& settings = Json::object()) {
  FigureRequest request;
  request.run = {Scale::smoke, "", folder};
  request.run.settings = settings;
  FigureOutcome outcome = run_figure(find_figure(name), request);
  for (const FailedJob& job : outcome.failed) ADD_FAILURE() << failure_text(job);
  return outcome;
}

// The rows of DomainBed's table of the figure's own runs, by training-domain validation.
std::map<std::string, DgTable::Row> table_of_runs(const std::string& folder) {
  std::vector<std::string> warnings;
  std::map<std::string, DgTable::Row> rows;
  for (const DgTable& table : dg_tables(read_dg_results(folder + "/runs", warnings)))
    if (table.rule == SelectionRule::training_domains)
      for (const DgTable::Row& row : table.rows) rows[row.algorithm] = row;
  EXPECT_TRUE(warnings.empty());
  return rows;
}

size_t runs_in(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder + "/runs"))
    count += entry.path().filename() == "results.jsonl" ? 1 : 0;
  return count;
}

DgRun tiny_run(const std::string& root) {
  DgRun run;
  run.set = "folder", run.root = root, run.model = "vit", run.steps = 2, run.eval_every = 1, run.image_size = 16;
  run.overrides = {"model.size=custom", "model.width=16", "model.depth=1",
                   "model.heads=2",     "model.patch=8",  "loader.batch=4"};
  return run;
}

}  // namespace

TEST(ProtocolFigures, EveryRowIsAJobOfEachEnvironmentAndOfTheAverage) {
  Repeats two;
  two.trials = 2, two.first_seed = 5;
  const std::vector<Json> jobs = environment_jobs({{{"model", "dense"}}}, {"A", "C"}, two);
  ASSERT_EQ(jobs.size(), 6u);
  EXPECT_EQ(jobs[0], (Json{{"model", "dense"}, {"environment", "A"}, {"seed", 5}}));
  EXPECT_EQ(jobs[5], (Json{{"model", "dense"}, {"environment", kAverage}, {"seed", 6}}));
}

// 2 trials of 2 models with each of 4 domains left out are 16 trainings, which the rows of averages and differences
// share; DomainBed's own table of them has the same means.
TEST(ProtocolFigures, PacsComparesPairsAndTrainsEachRunOnce) {
  const testing::TemporaryFolder folder;
  const FigureOutcome outcome = smoke("gmoe/pacs", folder.path("run"), {{"trials", 2}, {"first_seed", 3}});
  EXPECT_EQ(runs_in(folder.path("run")), 16u);
  const auto at = [&](const char* model, const std::string& environment, const char* measure) {
    return outcome.table.mean({{"model", model}, {"environment", environment}}, measure);
  };
  double sum = 0;
  for (const std::string& environment : glyph_environments()) {
    sum += *at("GMoE", environment, "accuracy");
    EXPECT_NEAR(*at("GMoE", environment, "difference"),
                *at("GMoE", environment, "accuracy") - *at("dense", environment, "accuracy"), 1e-9);
  }
  EXPECT_NEAR(*at("GMoE", kAverage, "accuracy"), sum / 4, 1e-9);
  EXPECT_FALSE(at("dense", kAverage, "difference"));
  const auto rows = table_of_runs(folder.path("run"));
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& [name, row] : rows)
    EXPECT_NEAR(row.cells.back()->mean, *at(name.starts_with("ERM (gmoe") ? "GMoE" : "dense", kAverage, "accuracy"),
                1e-9)
        << name;
  // Experts do not cost a token more than the MLP that they replace; what GMoE costs more is its two routers.
  EXPECT_GT(*at("GMoE", kAverage, "multiply_adds"), *at("dense", kAverage, "multiply_adds"));
}

TEST(ProtocolFigures, TheAblationIsThatOfTheTableOfAblations) {
  const testing::TemporaryFolder folder;
  const FigureOutcome outcome = smoke("gmoe/ablation", folder.path("run"));
  EXPECT_EQ(runs_in(folder.path("run")), 12u);  // three variants, four domains
  const auto average = [&](const char* variant, const char* measure) {
    return *outcome.table.mean({{"variant", variant}, {"environment", kAverage}}, measure);
  };
  EXPECT_NEAR(average("router: linear", "difference"),
              average("router: linear", "accuracy") - average("baseline", "accuracy"), 1e-9);
  EXPECT_LT(average("router: linear", "multiply_adds"), average("baseline", "multiply_adds"));
  EXPECT_GT(average("placement: every two", "multiply_adds"), average("baseline", "multiply_adds"));
}

TEST(ProtocolFigures, MnistIsBesideItsPublishedAverage) {
  EXPECT_EQ(published_average("rotated_mnist").mean, 98.0);
  EXPECT_EQ(published_average("colored_mnist").mean, 51.5);
  const testing::TemporaryFolder folder;
  const FigureOutcome outcome = smoke("gmoe/colored_mnist", folder.path("run"));
  EXPECT_EQ(outcome.table.rows.size(), 4u);
  EXPECT_NE(result_markdown(outcome).find("glyphs for MNIST"), std::string::npos);
  EXPECT_FALSE(outcome.table.paper({{"environment", kAverage}}, "accuracy"));  // never beside a substitute's
}

TEST(ProtocolFigures, MissingDataIsOneLine) {
  const testing::TemporaryFolder folder;
  FigureRequest request;
  request.run = {Scale::smoke, folder.path(), folder.path("run")};
  const auto message = [&] {
    return testing::error_text<Error>([&] { run_figure(find_figure("gmoe/pacs"), request); });
  };
  EXPECT_TRUE(message().starts_with("pacs is not complete: there is no art_painting/ with images in " +
                                    folder.path("PACS") + "; obtain it from https://"))
      << message();
  EXPECT_TRUE(message().ends_with("--synthetic uses a synthetic substitute instead")) << message();
  fs::create_directories(folder.path("pacs112"));  // a copy with smaller images
  EXPECT_NE(message().find(folder.path("pacs112")), std::string::npos);
}

TEST(ProtocolFigures, ARunInAStoreIsTrainedOnceAndGoesOnAfterAnInterrupt) {
  const testing::TemporaryFolder folder;
  FigureRun figure{Scale::smoke, "", folder.path("run")};
  const DgRun run = tiny_run(glyph_domains({.classes = 3, .side = 16, .images = 24}, figure));
  const JobStore store(folder.path("store"), "runs");
  set_interrupted(true);
  EXPECT_THROW(train_in_store(run, store), Error);
  set_interrupted(false);
  const DgResult result = train_in_store(run, store);
  EXPECT_EQ(result.evaluations.back().step, 1);
  EXPECT_EQ(result.environments, glyph_environments());
  const auto written = fs::last_write_time(results_of_job(run, store));
  EXPECT_EQ(train_in_store(run, store).evaluations.back().in, result.evaluations.back().in);
  EXPECT_EQ(fs::last_write_time(results_of_job(run, store)), written);
}

TEST(ProtocolFigures, TrialsOfASweepBeginWhereAsked) {
  DgSweep sweep;
  sweep.trials = 2, sweep.hparams = 1, sweep.pairs = false, sweep.first_trial = 7;
  const std::vector<DgRun> runs = sweep_runs(sweep);
  ASSERT_EQ(runs.size(), 2u * 6);
  EXPECT_EQ(runs.front().trial_seed, 7);
  EXPECT_EQ(runs.back().trial_seed, 8);
}

}  // namespace sparsight::gmoe::protocol_figures_test
