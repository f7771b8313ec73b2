// Every figure that can be reproduced: it describes itself, and runs at its smallest scale without any data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "sparsight/core/json_fields.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/result_text.h"
#include "sparsight/reproduce/run_figure.h"
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
    EXPECT_TRUE(contains(figure_.axes, chart.x));
    EXPECT_TRUE(chart.series.empty() || contains(figure_.axes, chart.series));
    const bool heat = chart.kind == FigureChart::Kind::heat;
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
  for (const Claim& claim : outcome.claims) {
    EXPECT_FALSE(claim.text.empty());
    EXPECT_FALSE(claim.measured.empty()) << claim.text;
  }
  for (const FigurePicture& picture : figure_.pictures)
    EXPECT_GT(read_file(folder.path("run/" + picture.file), size_t{1} << 24).size(), 100u);
  EXPECT_FALSE(result_markdown(outcome).empty());
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Figure& figure : figures()) names.push_back(figure.name);
  return names;
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Figures, EveryFigure, ::testing::ValuesIn(names()), name_of);

TEST(Figures, HaveNamesOfTheirOwn) {
  const std::vector<std::string> all = names();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_NE(testing::message_of<UsageError>([] { find_figure("pmoe/fig33"); }).find("did you mean \"pmoe/fig3\"?"),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::figures_test
