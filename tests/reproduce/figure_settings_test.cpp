#include "sparsight/reproduce/figure_settings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "tests/reproduce/toy_figure.h"
#include "tests/support/errors.h"

namespace sparsight::figure_settings_test {
namespace {

using testing::error_text;

struct ToySettings {
  Repeats repeats;
  std::vector<int64_t> samples = {100};
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integers("samples", &samples, {1, 1000}, "numbers of samples");
  }
};
ToySettings toy_settings(Scale scale) { return {{scale == Scale::paper ? 5 : 2}}; }

Figure figure_with_settings() {
  Figure figure = testing::toy_figure();
  figure.settings = make_settings(toy_settings);
  return figure;
}

TEST(FigureSettings, DefaultsDependOnTheScale) {
  const Figure figure = figure_with_settings();
  EXPECT_EQ(figure_settings(figure, {Scale::paper}), Json({{"trials", 5}, {"first_seed", 0}, {"samples", {100}}}));
  EXPECT_EQ(chosen(toy_settings, FigureRun{Scale::small}).repeats.trials, 2);
  FigureRun run{Scale::small};
  run.settings = {{"samples", {30, 50}}, {"trials", 2}};
  EXPECT_EQ(chosen(toy_settings, run).samples, (std::vector<int64_t>{30, 50}));
  EXPECT_EQ(changed_settings(figure, run), "samples=[30,50]") << "trials=2 is the default";
}

TEST(FigureSettings, RefuseWhatIsNotDeclared) {
  const Figure figure = figure_with_settings();
  FigureRun run;
  run.settings = {{"trails", 2}};
  EXPECT_EQ(error_text<UsageError>([&] { figure_settings(figure, run); }),
            "unknown setting trails; did you mean \"trials\"? (known: trials, first_seed, samples)");
  run.settings = {{"samples", {0}}};
  EXPECT_EQ(error_text<UsageError>([&] { figure_settings(figure, run); }), "samples must be from 1 to 1000, got 0");
  EXPECT_EQ(error_text<UsageError>([&] { figure_settings(testing::toy_figure(), run); }),
            "toy/line has no settings; leave --set out");
}

TEST(FigureSettings, HelpHasEachOnce) {
  const std::vector<SettingHelp> help = settings_help(figure_with_settings(), Scale::paper);
  ASSERT_EQ(help.size(), 3u);
  EXPECT_EQ(help[0].value, "5");
  EXPECT_EQ(help[2].allowed, "1 to 1000");
  EXPECT_EQ(help[2].help, "numbers of samples");
}

TEST(FigureSettings, SeedsMultiplyJobs) {
  const std::vector<Json> jobs = with_seeds({{{"x", 1}}, {{"x", 2}}}, {2, 7});
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs[1], Json({{"x", 1}, {"seed", 8}}));
  EXPECT_EQ(jobs[2], Json({{"x", 2}, {"seed", 7}}));
}

}  // namespace
}  // namespace sparsight::figure_settings_test
