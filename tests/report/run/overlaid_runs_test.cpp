#include "sparsight/report/run/overlaid_runs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/io/atomic_file.h"
#include "sparsight/report/report.h"
#include "tests/report/run_fixture.h"
#include "tests/support/errors.h"

namespace sparsight::overlaid_runs_test {
namespace {

using testing::eval_record;
using testing::lines;
using testing::run_program;
using testing::TemporaryFolder;
using testing::train_record;
using testing::write_run;

// Runs of unequal length that differ in two settings, of which one run lacks one.
std::vector<std::string> two_runs(const TemporaryFolder& folder) {
  std::vector<Json> longer;
  for (int step = 10; step <= 60; step += 10) longer.push_back(train_record(step, 2.0 / step));
  longer.push_back(eval_record("val", 30, 0.5));
  longer.push_back(eval_record("val", 60, 0.7));
  longer.push_back(eval_record("test", 60, 0.875));
  const std::vector<Json> shorter{train_record(10, 1.5), eval_record("val", 10, 0.25)};
  return {write_run(folder, "long", lines(longer), "[model]\nname = \"vit\"\n[optimizer]\nlr = 0.1\nbeta = 0.9\n"),
          write_run(folder, "short", lines(shorter), "[model]\nname = \"vit\"\n[optimizer]\nlr = 0.2\n")};
}

std::vector<std::string> series_in(const Chart& chart) {
  return chart.spec["encoding"]["color"]["scale"]["domain"].get<std::vector<std::string>>();
}

}  // namespace

// Wilson's interval of 875 of 1,000: run_comparison_test.cpp. Of 250 of 1,000, with z = 1.959964: (0.25 + z^2 / 2000 -+
// z sqrt(0.25 * 0.75 / 1000 + z^2 / 4e6)) / (1 + z^2 / 1000) = 0.224153 and 0.277760.
TEST(OverlaidRuns, HaveResultsAndTheSettingsThatDiffer) {
  const TemporaryFolder folder;
  const OverlaidRuns overlaid = read_overlaid_runs(two_runs(folder));
  EXPECT_TRUE(overlaid.warnings.empty());
  const Rows results = overlaid_results(overlaid.runs);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(std::vector<std::string>(results[0].begin(), results[0].begin() + 6),
            (std::vector<std::string>{"run", "split", "accuracy", "95 % CI", "loss", "steps"}));
  EXPECT_EQ(std::vector<std::string>(results[1].begin(), results[1].begin() + 6),
            (std::vector<std::string>{"long", "test", "87.50 %", "85.31 to 89.41", "0.1250", "60"}));
  EXPECT_EQ(std::vector<std::string>(results[2].begin(), results[2].begin() + 6),
            (std::vector<std::string>{"short", "validation", "25.00 %", "22.42 to 27.78", "0.7500", "10"}));
  const Rows settings = differing_settings(overlaid.runs);
  EXPECT_EQ(settings,
            (Rows{{"setting", "long", "short"}, {"optimizer.beta", "0.9", "-"}, {"optimizer.lr", "0.1", "0.2"}}));
}

TEST(OverlaidRuns, AllHaveACurveOfTheirOwnColourUpToTheirLastStep) {
  const TemporaryFolder folder;
  const std::vector<Chart> charts = overlaid_charts(read_overlaid_runs(two_runs(folder)).runs);
  std::vector<std::string> titles;
  for (const Chart& chart : charts) {
    titles.push_back(chart.title);
    EXPECT_EQ(series_in(chart), (std::vector<std::string>{"long", "short"})) << chart.title;
    EXPECT_EQ(chart.spec["encoding"]["color"]["scale"]["range"], Json({"#1f83c6", "#e0651a"})) << chart.title;
  }
  EXPECT_EQ(titles, (std::vector<std::string>{"Training loss", "Validation loss", "Training accuracy",
                                              "Validation accuracy", "Learning rate"}));
  double last_long = 0, last_short = 0;
  for (const Json& point : charts[0].spec["data"]["values"])
    (point["series"] == "long" ? last_long : last_short) = point["step"].get<double>();
  EXPECT_EQ(last_long, 60);
  EXPECT_EQ(last_short, 10);
}

TEST(OverlaidRuns, ADamagedRunIsNamedAndLeftOut) {
  const TemporaryFolder folder;
  std::vector<std::string> runs = two_runs(folder);
  runs.push_back(write_run(folder, "empty", "{\"kind\": \"nonsense\"}\n"));
  runs.push_back(write_run(folder, "no_log", ""));
  std::filesystem::remove(runs.back() + "/metrics.jsonl");
  runs.push_back(
      write_run(folder, "torn", lines({train_record(5, 1)}) + "{]\n" + lines({train_record(6, 1)}), "[model\n"));
  const OverlaidRuns overlaid = read_overlaid_runs(runs);
  ASSERT_EQ(overlaid.runs.size(), 3u);
  EXPECT_EQ(overlaid.runs[2].name, "torn");
  ASSERT_EQ(overlaid.warnings.size(), 4u) << "left out twice; damaged lines and configuration of the last";
  EXPECT_NE(overlaid.warnings[0].find("empty is left out: its metrics have no training"), std::string::npos);
  EXPECT_NE(overlaid.warnings[1].find("no_log is left out: it has no metrics.jsonl"), std::string::npos);
  EXPECT_NE(overlaid.warnings[2].find("torn: "), std::string::npos);
  const std::string page = overlaid_page(overlaid);
  EXPECT_NE(page.find("Some of the runs could not be read"), std::string::npos);
  EXPECT_EQ(differing_settings(overlaid.runs).size(), 3u) << "a run without configuration differs in nothing";
  EXPECT_NE(testing::error_text([&] {
              read_overlaid_runs({runs[0], runs[2]});
            }).find("fewer than two runs"),
            std::string::npos);
}

TEST(OverlaidRuns, RefuseWhatIsNoComparison) {
  const TemporaryFolder folder;
  const std::vector<std::string> runs = two_runs(folder);
  EXPECT_NE(testing::error_text<UsageError>([&] {
              read_overlaid_runs({runs[0], runs[0] + "/"});
            }).find("given twice"),
            std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([&] { read_overlaid_runs({runs[0]}); }).find("got 1"), std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([&] {
              read_overlaid_runs(std::vector<std::string>(kMaxOverlaidRuns + 1, runs[0]));
            }).find("two to 10 runs go on one page, got 11"),
            std::string::npos);
  EXPECT_NE(testing::error_text([&] {
              read_overlaid_runs({runs[0], folder.path("none")});
            }).find("not a run folder"),
            std::string::npos);
}

TEST(OverlaidRuns, FoldersOfOneNameAreShownByTheirPaths) {
  const TemporaryFolder folder;
  const std::string a = write_run(folder, "a/run", lines({train_record(5, 1)})),
                    b = write_run(folder, "b/run", lines({train_record(5, 1)}));
  const OverlaidRuns overlaid = read_overlaid_runs({a, b});
  EXPECT_EQ(overlaid.runs[0].name, a);
  EXPECT_EQ(overlaid.runs[1].name, b);
  EXPECT_NE(overlaid_page(overlaid).find("All settings are the same."), std::string::npos);
}

TEST(OverlaidRuns, AreAPageOrTablesOfTheProgram) {
  const TemporaryFolder folder;
  const std::vector<std::string> runs = two_runs(folder);
  const std::string out = folder.path("both.html");
  EXPECT_EQ(run_program({"report", runs[0], runs[1], "--out", out}).out, out + "\n");
  EXPECT_NE(read_file(out, size_t{1} << 24).find("<h1>2 runs</h1><p>long, short</p>"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(runs[0] + "/report.html"));
  const std::string table = run_program({"report", runs[0], runs[1], "--format", "table"}).out;
  EXPECT_NE(table.find("optimizer.lr"), std::string::npos) << table;
  EXPECT_EQ(run_program({"report", runs[0], runs[1], "--format", "csv"}).exit_code, 2);
  EXPECT_EQ(run_program({"report", runs[0], runs[1], "--baseline", runs[0]}).exit_code, 2);
  EXPECT_EQ(run_program({"report", runs[0], folder.path("none")}).exit_code, 1);
}

}  // namespace sparsight::overlaid_runs_test
