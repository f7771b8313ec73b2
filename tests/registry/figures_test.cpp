// Every figure that can be reproduced: it describes itself, and runs at its smallest scale without any data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "sparsight/core/json_fields.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/result_charts.h"
#include "sparsight/reproduce/result_text.h"
#include "sparsight/reproduce/results.h"
#include "sparsight/reproduce/run_figure.h"
#include "tests/papers/claim_tables.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

#include <nlohmann/json.hpp>

namespace sparsight::figures_test {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Json on(const std::vector<std::string>& keys, const Json& settings) {
  Json some = Json::object();
  for (const std::string& key : keys) some[key] = settings.at(key);
  return some;
}

// The axes on which a chart draws the table's values, "x" and "y": those of some layer that has a title.
std::set<std::string> find_axes(const Json& spec) {
  std::set<std::string> found;
  for (const Json& layer : spec.at("layer"))
    for (const char* axis : {"x", "y"}) {
      const Json encoding = layer.at("encoding").value(axis, Json::object());
      if (!layer.contains("data") && !encoding.value("title", "").empty()) found.insert(axis);
    }
  return found;
}

class EveryFigure : public ::testing::TestWithParam<std::string> {
 protected:
  const Figure& figure_ = find_figure(GetParam());
  std::vector<std::string> measures() const {
    std::vector<std::string> keys;
    for (const Measure& measure : figure_.measures) keys.push_back(measure.key);
    return keys;
  }
};

TEST_P(EveryFigure, SaysWhatItIs) {
  EXPECT_FALSE(figure_.title.empty());
  EXPECT_FALSE(figure_.needs.empty());
  EXPECT_FALSE(figure_.duration.empty());
  EXPECT_FALSE(figure_.axes.empty());
  ASSERT_FALSE(figure_.measures.empty());
  for (const Json& row : figure_.paper) {
    for (const std::string& axis : figure_.axes) EXPECT_TRUE(row.contains(axis)) << row;
    EXPECT_TRUE(std::any_of(figure_.measures.begin(), figure_.measures.end(), [&](const Measure& measure) {
      return number(row, measure.key).has_value();
    })) << row;
  }
  for (const FigureChart& chart : figure_.charts) {
    const bool line = chart.kind == FigureChart::Kind::line, heat = chart.kind == FigureChart::Kind::heat;
    EXPECT_TRUE(contains(figure_.axes, chart.x) || (line && contains(measures(), chart.x)));
    EXPECT_TRUE(chart.series.empty() || contains(figure_.axes, chart.series));
    EXPECT_TRUE(chart.label.empty() || (line && contains(figure_.axes, chart.label)));
    EXPECT_TRUE(contains(heat ? figure_.axes : measures(), chart.y));
    EXPECT_TRUE(!heat || contains(measures(), chart.measure));
  }
}

TEST_P(EveryFigure, JobsOfARowDifferInNothingButTheirSeed) {
  for (const Scale scale : {Scale::smoke, Scale::small, Scale::paper}) {
    const FigureRun run{scale, "", "nowhere"};
    const std::vector<Json> jobs = figure_.jobs(run);
    ASSERT_FALSE(jobs.empty());
    EXPECT_EQ(jobs, figure_.jobs(run)) << "the same list each time";
    std::set<std::string> all;
    std::map<std::string, Json> rows;
    for (const Json& job : jobs) {
      EXPECT_TRUE(all.insert(job.dump()).second) << "twice: " << job;
      Json settings = job;
      settings.erase("seed");
      const Json& first = rows.try_emplace(on(figure_.axes, job).dump(), settings).first->second;
      EXPECT_EQ(settings, first);
    }
  }
}

TEST_P(EveryFigure, RunsAtItsSmallestScaleWithoutData) {
  const testing::TemporaryFolder folder;
  FigureRequest request;
  request.run = {Scale::smoke, "", folder.path("run")};
  const FigureOutcome outcome = run_figure(figure_, request);
  for (const FailedJob& job : outcome.failed) ADD_FAILURE() << failure_text(job);
  for (const ResultRow& row : outcome.table.rows)
    EXPECT_TRUE(std::any_of(row.mean.begin(), row.mean.end(), [](const auto& mean) { return mean.has_value(); }))
        << row.settings;
  for (size_t m = 0; m < figure_.measures.size(); ++m) {
    const bool of_images = !figure_.measures[m].images.count.empty();
    EXPECT_TRUE(of_images || figure_.measures[m].key != "accuracy") << "an accuracy says over how many images it is";
    for (const ResultRow& row : outcome.table.rows)
      for (const Trial& trial : row.trials)
        EXPECT_TRUE(!of_images || !trial.values[m] || trial.shares[m].images > 0)
            << figure_.measures[m].key << ": no " << figure_.measures[m].images.count << " in settings or result";
  }
  for (const Claim& claim : outcome.claims) {
    EXPECT_FALSE(claim.text.empty());
    EXPECT_FALSE(claim.measured.empty()) << claim.text;
    EXPECT_EQ(verdict_text(claim), "withheld at scale smoke") << claim.text;
  }
  for (const FigurePicture& picture : figure_.pictures)
    EXPECT_GT(read_file(folder.path("run/" + picture.file), size_t{1} << 24).size(), 100u);
  EXPECT_FALSE(result_markdown(outcome).empty());
  const std::vector<Chart> charts = result_charts(outcome);
  for (const Chart& chart : charts) {
    const std::set<std::string> drawn = find_axes(chart.spec);
    EXPECT_TRUE(drawn.contains("x") && drawn.contains("y")) << chart.title << ": " << chart.spec.dump();
  }
}

// What the claims say of jobs with these results.
std::vector<Claim> result_claims(const Figure& figure, const testing::ClaimResult& result) {
  const FigureRun run{Scale::paper, "", "nowhere"};
  const std::vector<Json> jobs = figure.jobs(run);
  std::vector<Json> results;
  for (const Json& job : jobs) results.push_back(result(job));
  return judged_claims(figure, make_table(figure, jobs, results, false), run);
}

// The results of one table for even seeds, of the other for odd ones.
testing::ClaimResult mixed(const testing::ClaimResult& even, const testing::ClaimResult& odd) {
  return [=](const Json& job) { return job.value("seed", 0) % 2 == 0 ? even(job) : odd(job); };
}

TEST_P(EveryFigure, EachClaimCanHoldCanFailAndCanBeUndecided) {
  std::vector<testing::ClaimResult> tables = testing::claim_tables(figure_.name);
  const size_t given = tables.size();
  for (size_t i = 0; i < given; ++i)
    for (size_t j = 0; j < given; ++j)
      if (i != j) tables.push_back(mixed(tables[i], tables[j]));
  tables.push_back([](const Json&) { return Json::object(); });  // nothing measured
  std::map<std::string, std::set<std::string>> verdicts;
  for (const testing::ClaimResult& table : tables)
    for (const Claim& claim : result_claims(figure_, table)) {
      const bool of_seeds = claim.seeds.has_value();
      EXPECT_TRUE(!claim.holds || !claim.test.empty()) << claim.text << ": no test is named";
      if (claim.holds) verdicts[claim.text].insert(*claim.holds ? "holds" : "fails");
      if (!claim.holds) verdicts[claim.text].insert(of_seeds ? "open at seeds" : "open");
      if (of_seeds) verdicts[claim.text].insert("statistical");
    }
  for (const auto& [text, seen] : verdicts) {
    EXPECT_TRUE(seen.contains("holds")) << text << ": no table of tests/papers for which it holds";
    EXPECT_TRUE(seen.contains("fails")) << text << ": no table for which it fails";
    EXPECT_TRUE(seen.contains(seen.contains("statistical") ? "open at seeds" : "open")) << text << ": always decided";
  }
}

TEST_P(EveryFigure, SettingsHaveHelpAndTheirDefaultsChangeNothing) {
  for (const Scale scale : {Scale::smoke, Scale::small, Scale::paper}) {
    FigureRun run{scale, "", "nowhere"};
    for (const SettingHelp& help : settings_help(figure_, scale)) EXPECT_FALSE(help.help.empty()) << help.name;
    const std::vector<Json> jobs = figure_.jobs(run);
    run.settings = figure_settings(figure_, run);
    EXPECT_EQ(figure_.jobs(run), jobs);
    EXPECT_EQ(changed_settings(figure_, run), "");
  }
}

TEST_P(EveryFigure, TrialsAreASetting) {
  FigureRun run{Scale::small, "", "nowhere"};
  const std::vector<Json> before = figure_.jobs(run);
  if (!before.front().contains("seed")) return;
  run.settings = {{"trials", 2}, {"first_seed", 40}};
  std::set<int64_t> seeds;
  for (const Json& job : figure_.jobs(run)) seeds.insert(job.at("seed").get<int64_t>());
  EXPECT_EQ(seeds, (std::set<int64_t>{40, 41}));
  EXPECT_EQ(changed_settings(figure_, run).find("first_seed=40") == std::string::npos, false);
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Figure& figure : figures()) names.push_back(figure.name);
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Figures, EveryFigure, ::testing::ValuesIn(names()), test_name);

TEST(Figures, HaveNamesOfTheirOwn) {
  const std::vector<std::string> all = names();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_NE(testing::error_text<UsageError>([] { find_figure("pmoe/fig33"); }).find("did you mean \"pmoe/fig3\"?"),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::figures_test
