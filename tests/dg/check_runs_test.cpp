#include "sparsight/dg/check_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/dg/sweep.h"
#include "sparsight/jobs/plan.h"
#include "sparsight/train/algorithm.h"
#include "tests/support/errors.h"

#include <nlohmann/json.hpp>

namespace sparsight::check_runs_test {
namespace {

using testing::error_text;

std::string refusal(const DgRun& run) {
  return testing::error_text([&] { check_runs({run}); });
}

}  // namespace

TEST(CheckRuns, RefusesBeforeAnythingStarts) {
  DgRun run;
  run.set = "pacs", run.test_envs = {0, 0};
  EXPECT_NE(refusal(run).find("the test environment 0 is named twice"), std::string::npos) << refusal(run);
  run.test_envs = {4};
  EXPECT_NE(refusal(run).find("test environment 4: pacs has the environments 0 to 3"), std::string::npos);
  run.test_envs = {0, 1, 2, 3};
  EXPECT_NE(refusal(run).find("leave at least one to train on"), std::string::npos);
  run.test_envs = {0}, run.overrides = {"optimiser.lr=1"};
  EXPECT_NE(refusal(run).find("optimizer"), std::string::npos);
  DgSweep sweep;
  sweep.algorithms = {"erm", "irmm"};
  EXPECT_THROW(sweep_jobs(sweep), UsageError);
}

// A pair of ColoredMNIST's three environments leaves one to train on.
TEST(CheckRuns, AnAlgorithmSaysHowManyEnvironmentsItNeeds) {
  DgRun run;
  run.set = "colored_mnist", run.test_envs = {0, 1}, run.algorithm = "irm";
  std::set<std::string> warned;
  const AlgorithmFacts needs_two{.domains = 2};
  const std::string message = testing::error_text([&] { check_run(run, 3, needs_two, warned); });
  EXPECT_NE(message.find("algorithm irm needs at least 2 training environments; with 2 of 3 tested there is 1;"),
            std::string::npos)
      << message;
  run.test_envs = {0};
  EXPECT_NO_THROW(check_run(run, 3, needs_two, warned));
  EXPECT_TRUE(warned.empty());
}

TEST(CheckRuns, OneLineWarnsWhereThereIsNothingToCompare) {
  DgRun run;
  run.set = "colored_mnist", run.test_envs = {0, 1}, run.algorithm = "coral";
  std::ostringstream said;
  LogSettings settings;
  settings.stream = &said;
  set_log(settings);
  std::set<std::string> warned;
  for (int i = 0; i < 2; ++i) check_run(run, 3, {.compares = 2}, warned);
  set_log(default_log_settings());
  const std::string text = said.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_NE(text.find("algorithm coral compares training environments; where 1 is left"), std::string::npos) << text;
}

TEST(CheckRuns, FactsAreGivenWithTheRegistration) {
  struct NoOptions {
    void declare(OptionSet&) {}
  };
  const auto never = [](const NoOptions&, const AlgorithmContext&) { return std::shared_ptr<Algorithm>(); };
  AlgorithmRegistry list("algorithm");
  list.add<NoOptions>("of_two", "for tests", never, {.title = "OfTwo", .domains = 2});
  list.add<NoOptions>("plain", "for tests", never);
  EXPECT_EQ(list.title("of_two"), "OfTwo");
  EXPECT_EQ(list.facts("of_two").domains, 2);
  EXPECT_EQ(list.title("plain"), "plain");
  EXPECT_EQ(list.facts("plain").domains, 1);
  EXPECT_THROW(list.facts("missing"), UsageError);
  EXPECT_EQ(algorithms().title("erm"), "ERM");
}

// What the run trains with, also where an override replaces a hyper-parameter; of the same settings in any order.
TEST(DgRun, ItsSettingsAreThoseOfTheConfiguration) {
  DgRun run;
  run.set = "pacs", run.model = "vit", run.overrides = {"optimizer.lr=0.5", "optimizer.lr=1e-2", "loader.batch=8"};
  const Json settings = dg_settings(run, dg_config(run));
  EXPECT_EQ(settings, Json::parse(R"({"image_size": 224, "loader.batch": 8, "optimizer.lr": 0.01,
                                      "train.eval_every": 300, "train.max_steps": 5001})"));
  DgRun same = run;
  same.overrides = {"loader.batch=8", "optimizer.lr=1e-2"};
  EXPECT_EQ(common_text(run), common_text(same));
  EXPECT_EQ(common_text(run), "loader.batch=8, optimizer.lr=1e-2");
  EXPECT_EQ(common_text(DgRun()), "");
}

TEST(DgSweep, ItsPlanNamesItsSetsAndNoTimeBeforeTheFirstRun) {
  DgSweep sweep;
  sweep.sets = {"pacs", "vlcs"}, sweep.trials = 1, sweep.hparams = 1, sweep.pairs = false;
  EXPECT_EQ(plan_text(plan_jobs(sweep_jobs(sweep), nullptr), 1),
            "dg pacs, vlcs: 8 jobs, 0 done, 8 left; the time is unknown until the first one is done");
}

TEST(DgSweep, ABillionTrialsArePlannedAtOnce) {
  DgSweep sweep;
  sweep.run.set = "pacs", sweep.trials = 1'000'000'000, sweep.hparams = 1000;
  const DgRunList runs = sweep_runs(sweep);
  EXPECT_EQ(runs.size(), size_t{10} * 1'000'000'000 * 1000);
  EXPECT_EQ(runs[10'000 + 21].trial_seed, 1);
  EXPECT_EQ(runs[10'000 + 21].hparams_seed, 2);
  EXPECT_EQ(runs[10'000 + 21].test_envs, std::vector<int64_t>{1});
  EXPECT_EQ(runs.back().trial_seed, 999'999'999);
  EXPECT_EQ(plan_jobs(sweep_jobs(sweep), nullptr).jobs, 10'000'000'000'000);
  sweep.hparams = 1'000'000'000;
  EXPECT_EQ(error_text<UsageError>([&] { sweep_runs(sweep); }),
            "the sweep has more than 10^15 runs; use fewer trials or hyper-parameter seeds");
}

TEST(DgSweep, NothingIsNamedTwice) {
  DgSweep sweep;
  sweep.run.set = "pacs", sweep.algorithms = {"erm", "irm", "erm"};
  const auto message = [&] { return error_text<UsageError>([&] { sweep_runs(sweep); }); };
  EXPECT_EQ(message(), "the algorithm erm is named twice; give each once");
  sweep.algorithms = {"erm"}, sweep.models = {"vit", "vit"};
  EXPECT_EQ(message(), "the model vit is named twice; give each once");
  sweep.models = {}, sweep.sets = {"pacs", "pacs"};
  EXPECT_EQ(message(), "the dataset pacs is named twice; give each once");
}

// Runs that compare sources are told from others of the same environments.
TEST(DgSweep, G46_RunsOfASingleSourceSayIt) {
  DgSweep sweep;
  sweep.run.set = "colored_mnist", sweep.trials = 1, sweep.hparams = 1, sweep.single_source = true;
  const std::vector<DgRun> runs = sweep_runs(sweep);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(dg_arguments(runs[0])["single_source"], true);
  EXPECT_FALSE(dg_arguments(DgRun()).contains("single_source"));
}

}  // namespace sparsight::check_runs_test
