#include "sparsight/reproduce/result_charts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sparsight/io/atomic_file.h"
#include "sparsight/reproduce/chart_images.h"
#include "sparsight/reproduce/result_page.h"
#include "sparsight/reproduce/results.h"
#include "sparsight/reproduce/write_outcome.h"
#include "tests/report/browser.h"
#include "tests/reproduce/toy_figure.h"
#include "tests/support/program.h"

namespace sparsight::result_charts_test {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

FigureChart chart_of(FigureChart::Kind kind) {
  FigureChart chart{kind, "x", "y", "model", "", false, false, {{"half", 20.0}}};
  if (kind == FigureChart::Kind::heat) chart.y = "model", chart.series = "", chart.measure = "y";
  return chart;
}

// y = 10 x + 0.5 +- 0.5 everywhere, with a chart of each kind.
struct Drawn {
  explicit Drawn(const std::string& synthetic = "") : figure(testing::toy_figure()) {
    figure.charts = {chart_of(FigureChart::Kind::line), chart_of(FigureChart::Kind::bars),
                     chart_of(FigureChart::Kind::heat)};
    outcome.figure = &figure;
    if (!synthetic.empty()) outcome.data.kind = RunData::Kind::synthetic, outcome.data.text = synthetic;
    const std::vector<Json> jobs = figure.jobs({});
    std::vector<Json> results;
    for (const Json& job : jobs) results.push_back(figure.measure(job, {}));
    outcome.table = make_table(figure, jobs, results, synthetic.empty());
    outcome.claims = figure.claims(outcome.table, {});
  }
  Figure figure;
  FigureOutcome outcome;
};

Json rows_of(const Chart& chart, const std::string& source) {
  Json rows = Json::array();
  for (const Json& row : chart.spec.at("data").at("values"))
    if (row.at("source") == source) rows.push_back(row);
  return rows;
}

TEST(ResultCharts, OursWithBarsAndThePapersBeside) {
  const std::vector<Chart> charts = result_charts(Drawn().outcome);
  ASSERT_EQ(charts.size(), 4u);  // line, bars, heat maps of ours and of the paper
  const Json ours = rows_of(charts[0], "ours"), paper = rows_of(charts[0], "paper");
  ASSERT_EQ(ours.size(), 6u);
  EXPECT_EQ(ours[2].at("x"), 4);
  EXPECT_EQ(ours[2].at("series"), "ours");
  EXPECT_EQ(ours[2].at("value"), 40.5);
  EXPECT_EQ(ours[2].at("low"), 40);
  EXPECT_EQ(ours[2].at("high"), 41);
  ASSERT_EQ(paper.size(), 2u);
  EXPECT_EQ(paper[1].at("value"), 42);
  EXPECT_EQ(charts[2].note, "ours");
  EXPECT_EQ(charts[3].note, "the paper's numbers");
}

TEST(ResultCharts, SyntheticDataIsNotComparedWithThePaper) {
  const std::vector<Chart> charts = result_charts(Drawn("glyphs").outcome);
  ASSERT_EQ(charts.size(), 3u);
  EXPECT_TRUE(rows_of(charts[0], "paper").empty());
}

TEST(ResultCharts, LogarithmicAxesTakePositiveNumbersOnly) {
  Drawn drawn;
  drawn.figure.charts = {chart_of(FigureChart::Kind::line)};
  drawn.figure.charts[0].logarithmic_x = drawn.figure.charts[0].logarithmic_y = true;
  drawn.outcome.table.rows[0].deviation[0] = 100;  // of 10.5: the lower end would be negative
  Chart chart = result_charts(drawn.outcome).at(0);
  EXPECT_EQ(rows_of(chart, "ours")[0].at("low"), 10.5);
  EXPECT_NE(chart.spec.dump().find("\"log\""), std::string::npos);
  drawn.outcome.table.rows[0].mean[0] = -1;
  drawn.figure.charts[0].logarithmic_x = false;
  chart = result_charts(drawn.outcome).at(0);
  EXPECT_EQ(chart.spec.dump().find("\"log\""), std::string::npos);
}

TEST(ResultCharts, NothingMeasuredIsNoChart) {
  Drawn drawn;
  for (ResultRow& row : drawn.outcome.table.rows) row.mean[0].reset();
  EXPECT_TRUE(result_charts(drawn.outcome).empty());
}

TEST(ResultPage, SaysAtTheTopThatDataIsSynthetic) {
  const std::string page = result_page(Drawn("glyphs").outcome, {});
  const size_t notice = page.find("<div class=\"notice\" id=\"synthetic\">synthetic substitute data: glyphs;");
  ASSERT_NE(notice, std::string::npos);
  EXPECT_LT(notice, page.find("<details id=\"claims\""));
  EXPECT_EQ(page.find("difference</th>"), std::string::npos);
  EXPECT_EQ(result_page(Drawn().outcome, {}).find("id=\"synthetic\""), std::string::npos);
}

TEST(ResultPage, OpensInABrowser) {
  const std::string browser = testing::find_browser();
  if (browser.empty()) GTEST_SKIP() << "no chromium on the PATH (or set SPARSIGHT_BROWSER)";
  const TemporaryFolder folder;
  Drawn drawn;
  drawn.outcome.failed = {{{{"x", 1}}, "</script><img src=x onerror=document.title='owned'>"}};
  const testing::BrowserPage page =
      testing::open_in_browser(browser, folder.write("page.html", result_page(drawn.outcome, {{"a picture", ""}})));
  EXPECT_EQ(page.charts, 4);
  EXPECT_EQ(page.console, "");
  EXPECT_NE(page.dom.find("id=\"problems\" hidden"), std::string::npos) << "the page noted a problem";
  EXPECT_NE(page.dom.find("<title>toy/line - Sparsight</title>"), std::string::npos);
  EXPECT_NE(page.dom.find("40.5 +- 0.5"), std::string::npos);
}

TEST(ChartImages, AreDrawnWithoutABrowser) {
  const TemporaryFolder folder;
  Drawn drawn;
  drawn.outcome.run.folder = folder.path();
  write_outcome(drawn.outcome);
  EXPECT_TRUE(fs::exists(folder.path("chart-4.vl.json")));
  if (!fs::exists(folder.path("chart-1.svg"))) GTEST_SKIP() << "vl-convert-python is missing";
  for (int chart = 1; chart <= 4; ++chart) {
    const std::string name = folder.path("chart-" + std::to_string(chart));
    EXPECT_NE(read_file(name + ".svg", 1 << 26).find("<svg"), std::string::npos);
    EXPECT_EQ(read_file(name + ".png", 1 << 26).substr(1, 3), "PNG");
  }
}

TEST(ChartImages, SayWhyThereAreNone) {
  const TemporaryFolder folder;
  const std::string name = folder.path("chart-1"), old = folder.write("chart-1.svg", "old");
  folder.write("chart-1.vl.json", "{}");
  EXPECT_NE(draw_charts({name}, "/no/such/python")
                .find("charts as PNG and SVG need vl-convert-python (pip install "
                      "vl-convert-python); cannot start /no/such/python"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(draw_charts({name}, "/bin/false"),
            "charts could not be written as PNG and SVG: /bin/false ended with exit code 1");
  EXPECT_EQ(draw_charts({}, "/no/such/python"), "");
}

}  // namespace
}  // namespace sparsight::result_charts_test
