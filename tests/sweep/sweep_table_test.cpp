#include "sparsight/sweep/sweep_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sparsight::sweep_table_test {
namespace {

TrialScore trial(int64_t seed, std::optional<double> validation, std::optional<double> test = {}) {
  return {seed, validation, test, 100, 400, 60, "jobs/x/run"};
}

const std::vector<SweepAxis>& axes() {
  static const std::vector<SweepAxis> all = parse_axes({"optimizer.lr=0.001,0.01,0.1"});
  return all;
}

std::vector<SettingScores> scores() {
  return {{{"0.001"}, {trial(0, 0.5, 0.4), trial(1, 0.6, 0.5)}},
          {{"0.01"}, {trial(0, 0.7), trial(1, 0.9)}},
          {{"0.1"}, {trial(0, 0.95)}}};
}

}  // namespace

TEST(SweepTable, TheDeviationOfAMeanDividesByOneLess) {
  EXPECT_EQ(mean_text({0.5, 0.6}), "55.00 +- 7.07");  // 10 / sqrt(2)
  EXPECT_EQ(mean_text({0.5, std::nullopt}), "50.00");
  EXPECT_EQ(mean_text({}), "-");
}

TEST(SweepTable, TheBestMeanIsFirstAndSettingsWithFewerSeedsAreLast) {
  EXPECT_EQ(ranked(scores()), (std::vector<size_t>{1, 0, 2}));
}

// Differences -0.2 and -0.3: mean -0.25, standard error 0.05; t of one degree of freedom at 97.5 % is 12.7062, so half
// of the interval over seeds is 0.63531. The shares 0.55 and 0.8 of 100 images have the error sqrt((0.2475 + 0.16) /
// 100) = 0.063836, times 1.95996 is 0.12512. Together: sqrt(0.63531^2 + 0.12512^2) = 0.64751.
TEST(SweepTable, DifferencesToTheBestArePairedBySeed) {
  const Rows rows = sweep_rows(axes(), scores());
  EXPECT_EQ(rows[0],
            (std::vector<std::string>{"optimizer.lr", "seeds", "validation %", "behind the best", "test %", "time"}));
  EXPECT_EQ(rows[1], (std::vector<std::string>{"0.01", "2", "80.00 +- 14.14", "best", "-", "1 min 00 s"}));
  EXPECT_EQ(rows[2], (std::vector<std::string>{"0.001", "2", "55.00 +- 7.07", "-25.00 (-89.75 to +39.75)",
                                               "45.00 +- 7.07", "1 min 00 s"}));
  EXPECT_EQ(rows[3][3], "-");  // one seed in common has no interval
  const Json json = sweep_json(axes(), scores());
  EXPECT_EQ(json["settings"][1]["settings"]["optimizer.lr"], 0.001);
  EXPECT_NEAR(json["settings"][1]["difference"]["mean"].get<double>(), -0.25, 1e-12);
  EXPECT_NEAR(json["settings"][1]["difference"]["interval"][0].get<double>(), -0.89751, 1e-5);
  EXPECT_TRUE(json["settings"][0]["difference"].is_null());
}

// Measured on 400 test images: differences 0.1 and 0.2 with standard error 0.05; shares 0.65 and 0.5 of 400 images have
// the error sqrt((0.2275 + 0.25) / 400) = 0.034551, times 1.95996 is 0.067719; sqrt(0.63531^2 + 0.067719^2) = 0.63891.
TEST(SweepTable, WithoutAValidationSplitTheFirstSettingIsTheOneToCompareWith) {
  const std::vector<SettingScores> tested{{{"0.001"}, {trial(0, {}, 0.4), trial(1, {}, 0.6)}},
                                          {{"0.01"}, {trial(0, {}, 0.5), trial(1, {}, 0.8)}}};
  EXPECT_FALSE(has_validation(tested));
  const Rows rows = sweep_rows(axes(), tested);
  EXPECT_EQ(rows[0][3], "against the first");
  EXPECT_EQ(rows[1][0], "0.001");
  EXPECT_EQ(rows[1][3], "-");
  EXPECT_EQ(rows[2][3], "+15.00 (-48.89 to +78.89)");
  EXPECT_EQ(sweep_json(axes(), tested)["compared_by"], "test");
}

TEST(SweepTable, AChartForTheSettingsAndOneForEachAxisOfNumbers) {
  const std::vector<Chart> charts = sweep_charts(axes(), scores());
  ASSERT_EQ(charts.size(), 2u);
  EXPECT_EQ(charts[0].spec["encoding"]["y"]["sort"][0], "optimizer.lr=0.01");
  EXPECT_EQ(charts[0].spec["layer"][1]["data"]["values"].size(), 5u);
  EXPECT_EQ(charts[1].spec["encoding"]["x"]["scale"]["type"], "log");
  EXPECT_EQ(charts[1].spec["data"]["values"][4]["value"], 0.1);
  const std::vector<SweepAxis> words = parse_axes({"router.name=a,b,c"});
  EXPECT_EQ(sweep_charts(words, {{{"a"}, {trial(0, 0.5)}}, {{"b"}, {}}, {{"c"}, {}}}).size(), 1u);
  EXPECT_TRUE(sweep_charts(words, {{{"a"}, {trial(0, {})}}}).empty());
}

TEST(SweepTable, ThePageEscapesValues) {
  const std::vector<SweepAxis> names = parse_axes({"data.root=\"<b>\""});
  const std::string page =
      sweep_page("own", names, {{names[0].values, {trial(0, 0.5)}}}, {{"4 settings, 1 epochs", {{"a"}, {"<i>"}}}});
  EXPECT_EQ(page.find("\"<b>\""), std::string::npos);
  EXPECT_NE(page.find("&lt;b&gt;"), std::string::npos);
  EXPECT_NE(page.find("&lt;i&gt;"), std::string::npos);
  EXPECT_NE(page.find("4 settings, 1 epochs"), std::string::npos);
}

}  // namespace sparsight::sweep_table_test
