// Figures 4 to 9: what their claims make of sentinels and of ends of the measured range, and trials that share data.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "sparsight/papers/pmoe/figures/digit_runs.h"
#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/results.h"
#include "sparsight/reproduce/run_figure.h"

namespace sparsight::pmoe::digit_figures_test {
namespace {

using Result = std::function<Json(const Json& job)>;

// The claim of a figure whose text contains `part`, for these results of its jobs at scale paper.
Claim claim_about(const std::string& part, const Figure& figure, const Result& result) {
  const FigureRun run{Scale::paper, "", "nowhere"};
  const std::vector<Json> jobs = figure.jobs(run);
  std::vector<Json> results;
  for (const Json& job : jobs) results.push_back(result(job));
  for (const Claim& claim : figure.claims(make_table(figure, jobs, results, false), run))
    if (claim.text.find(part) != std::string::npos) return claim;
  ADD_FAILURE() << "no claim about " << part;
  return {};
}

// 142 epochs against a cap of 150 that nobody beats: 33 % and 0 % of the trials reach zero training error.
TEST(Figure4, P46_P47_FewerEpochsNeedMostTrialsToReachZeroError) {
  const auto epochs = [](double reached_of_five) {
    return [=](const Json& job) -> Json {
      const bool reaches = job.at("model") != "cnn" && job.at("seed").get<double>() < reached_of_five;
      return {{"accuracy", 90}, {"epochs", reaches ? Json(142) : Json()}, {"zero_error", reaches ? 100 : 0}};
    };
  };
  const Claim claim = claim_about("separate reaches zero", find_figure("pmoe/fig4"), epochs(2));
  EXPECT_FALSE(claim.holds);
  EXPECT_EQ(claim.measured, "only 40 % of its trials and 0 % of the CNN's reach it at 1000 samples");
}

TEST(Figure4, P25_P47_EpochsOfATrialWithoutZeroErrorAreNull) {
  DigitTrial trial;
  trial.result.epochs = {{1, 0.5, 3}, {2, 0.4, 1}};
  EXPECT_TRUE(accuracy_json(trial).at("epochs").is_null());
  trial.result.epochs.push_back({3, 0.1, 0});
  trial.result.one_signed = true;
  const Json found = accuracy_json(trial);
  EXPECT_EQ(found.at("epochs"), 3);
  EXPECT_EQ(found.at("one_signed"), 100);
  EXPECT_EQ(found.at("log").at("train_errors"), Json({3, 1, 0}));
}

TEST(Figure5, P48_AnEndOfTheRangeIsSaidAndNotFitted) {
  const Claim claim = claim_about("half of the trials", find_figure("pmoe/fig5"), [](const Json& job) -> Json {
    const double first = job.at("patches") == 2 ? 300 : 400 + 30 * job.at("patches").get<double>();
    return {{"success", job.at("samples").get<double>() >= first ? 100 : 0}};
  });
  EXPECT_EQ(claim.measured.find("2: at most 400, 4: 550"), 0u) << claim.measured;
  EXPECT_NE(claim.measured.find("of the 5 points inside the range"), std::string::npos) << claim.measured;
}

// Figures 6 to 9 with the paper's axes and numbers; sweeps have the guide of the theorems and the CNN as a line.
TEST(DigitFigures, P49_P50_P51_P52_HaveThePapersAxesGuidesAndNumbers) {
  const struct {
    const char *figure, *axis, *measure;
    double guide;
    size_t published;
  } cases[] = {{"pmoe/fig6", "experts", "accuracy", 0.25, 15},
               {"pmoe/fig7", "patches", "accuracy", 0.375, 25},
               {"pmoe/fig8", "patches", "found", 0, 1},
               {"pmoe/fig9", "samples", "found_1", 0, 10}};
  for (const auto& c : cases) {
    const Figure& figure = find_figure(c.figure);
    EXPECT_NE(std::ranges::find(figure.axes, c.axis), figure.axes.end()) << c.figure;
    EXPECT_GE(figure.paper.size(), c.published) << c.figure;
    for (const Json& row : figure.paper) EXPECT_TRUE(row.contains(c.measure)) << c.figure << ": " << row;
    EXPECT_EQ(figure.charts.at(0).guide.has_value(), c.guide > 0) << c.figure;
    if (c.guide > 0) {
      EXPECT_EQ(figure.charts.at(0).guide->power, c.guide) << c.figure;
    }
  }
}

TEST(DigitJobs, MayShareTheDataOfTheFirst) {
  const Figure& figure = find_figure("pmoe/fig5");
  FigureRun run{Scale::paper, "", "nowhere"};
  run.settings = {{"share", true}, {"first_seed", 100}, {"trials", 3}, {"samples", {400}}, {"patches", {2}}};
  std::set<uint64_t> seeds, shared;
  for (const Json& job : figure.jobs(run)) {
    seeds.insert(job.at("seed").get<uint64_t>());
    shared.insert(shared_seed(job));
  }
  EXPECT_EQ(seeds, (std::set<uint64_t>{100, 101, 102}));
  EXPECT_EQ(shared, std::set<uint64_t>{100});
}

}  // namespace
}  // namespace sparsight::pmoe::digit_figures_test
