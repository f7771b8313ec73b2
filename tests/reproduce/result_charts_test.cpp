#include "sparsight/reproduce/result_charts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "sparsight/io/atomic_file.h"
#include "sparsight/reproduce/chart_encodings.h"
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

FigureChart make_chart(FigureChart::Kind kind) {
  FigureChart chart{kind, "x", "y", "model", "", false, false, {{"half", 20.0}}};
  if (kind == FigureChart::Kind::heat) chart.y = "model", chart.series = "", chart.measure = "y";
  return chart;
}

// y = 10 x + 0.5 +- 0.5 everywhere, with a chart of each kind.
struct Drawn {
  explicit Drawn(const std::string& synthetic = "") : figure(testing::toy_figure()) {
    figure.charts = {make_chart(FigureChart::Kind::line), make_chart(FigureChart::Kind::bars),
                     make_chart(FigureChart::Kind::heat)};
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

Json data_rows(const Chart& chart, const std::string& source) {
  Json rows = Json::array();
  for (const Json& row : chart.spec.at("data").at("values"))
    if (row.at("source") == source) rows.push_back(row);
  return rows;
}

TEST(ResultCharts, OursWithBarsAndThePapersBeside) {
  const std::vector<Chart> charts = result_charts(Drawn().outcome);
  ASSERT_EQ(charts.size(), 4u);  // line, bars, heat maps of ours and of the paper
  const Json ours = data_rows(charts[0], "ours"), paper = data_rows(charts[0], "paper");
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
  EXPECT_TRUE(data_rows(charts[0], "paper").empty());
}

TEST(ResultCharts, LongNotesAreBelowEachOtherAndWholeNumbersHaveNoFractionsBetweenThem) {
  Chart chart = result_charts(Drawn("glyphs").outcome).at(0);
  chart.note = "short; " + std::string(80, 'a') + "; " + std::string(88, 'b') + "; end";
  const Json subtitle = standalone_chart(chart).at("title").at("subtitle");
  EXPECT_EQ(subtitle, Json::array({"short; " + std::string(80, 'a'), std::string(88, 'b'), "end"}));
  EXPECT_NE(chart.spec.dump().find(R"("tickMinStep":1)"), std::string::npos);
}

TEST(ResultCharts, LogarithmicAxesTakePositiveNumbersOnly) {
  Drawn drawn;
  drawn.figure.charts = {make_chart(FigureChart::Kind::line)};
  drawn.figure.charts[0].logarithmic_x = drawn.figure.charts[0].logarithmic_y = true;
  drawn.outcome.table.rows[0].deviation[0] = 100;  // of 10.5: the lower end would be negative
  Chart chart = result_charts(drawn.outcome).at(0);
  EXPECT_EQ(data_rows(chart, "ours")[0].at("low"), 10.5);
  EXPECT_NE(chart.spec.dump().find("\"log\""), std::string::npos);
  drawn.outcome.table.rows[0].mean[0] = -1;
  drawn.figure.charts[0].logarithmic_x = false;
  chart = result_charts(drawn.outcome).at(0);
  EXPECT_EQ(chart.spec.dump().find("\"log\""), std::string::npos);
}

// In a chart of y against itself every point is at (y, y), with its x as text; the paper's too, without text.
TEST(ResultCharts, XCanBeAMeasureAndPointsHaveLabels) {
  Drawn drawn;
  FigureChart chart = make_chart(FigureChart::Kind::line);
  chart.x = "y", chart.label = "x", chart.logarithmic_x = true;
  drawn.figure.charts = {chart};
  const Chart with_labels = result_charts(drawn.outcome).at(0);
  const Json ours = data_rows(with_labels, "ours"), paper = data_rows(with_labels, "paper");
  ASSERT_EQ(ours.size(), 6u);
  EXPECT_EQ(ours[2].at("x"), 40.5);
  EXPECT_EQ(ours[2].at("value"), 40.5);
  EXPECT_EQ(ours[2].at("label"), "4");
  EXPECT_EQ(ours[2].at("series"), "ours");
  ASSERT_EQ(paper.size(), 2u);
  EXPECT_EQ(paper[1].at("x"), 42);
  EXPECT_EQ(with_labels.title, "y (%) by y (%)");
  size_t texts = 0;
  for (const Json& layer : with_labels.spec.at("layer"))
    if (layer.at("encoding").contains("text") && layer.at("encoding").at("text").at("field") == "label") ++texts;
  EXPECT_EQ(texts, 2u);  // one for each series
  drawn.figure.charts[0].label = "";
  EXPECT_EQ(result_charts(drawn.outcome).at(0).spec.dump().find("label\""), std::string::npos);
}

// The layers of a chart whose data are not the table's.
std::vector<Json> find_own_data(const Json& spec) {
  std::vector<Json> all;
  for (const Json& layer : spec.at("layer"))
    if (layer.contains("data")) all.push_back(layer.at("data").at("values"));
  return all;
}

// y = 10 x + 0.5 by any power: the fit is the line itself with power 1.
TEST(ResultCharts, AGuideIsFittedToOurMeansFromAnXOn) {
  Drawn drawn;
  drawn.figure.charts = {make_chart(FigureChart::Kind::line)};
  drawn.figure.charts[0].guide = {"a + b x", 1, 1};
  const Json rows = data_rows(result_charts(drawn.outcome).at(0), "a + b x");
  ASSERT_EQ(rows.size(), 2 * 41u);  // two series
  EXPECT_EQ(rows[0].at("x"), 1);
  EXPECT_NEAR(rows[0].at("value").get<double>(), 10.5, 1e-9);
  EXPECT_NEAR(rows[20].at("value").get<double>(), 25.5, 1e-9);
  EXPECT_NEAR(rows[40].at("x").get<double>(), 4, 1e-9);
  EXPECT_NEAR(rows[40].at("value").get<double>(), 40.5, 1e-9);
  drawn.figure.charts[0].guide->from = 2;  // two points determine any curve
  EXPECT_TRUE(data_rows(result_charts(drawn.outcome).at(0), "a + b x").empty());
}

TEST(ResultCharts, ASeriesWithOneXIsALineAcrossTheChart) {
  Drawn drawn;
  drawn.figure.charts = {make_chart(FigureChart::Kind::line)};
  const auto rules_without_x = [&] {
    size_t count = 0;
    const Chart chart = result_charts(drawn.outcome).at(0);
    for (const Json& layer : chart.spec.at("layer"))
      count += layer.at("mark").at("type") == "rule" && !layer.contains("data") && !layer.at("encoding").contains("x");
    return count;
  };
  EXPECT_EQ(rules_without_x(), 0u);
  for (size_t i = 4; i < 6; ++i) drawn.outcome.table.rows[i].mean[0].reset();  // theirs, but for x = 1
  EXPECT_EQ(rules_without_x(), 1u);
}

// Three models at 1, 2 and 4 operations, each a series of its own.
TEST(ResultCharts, SeriesOfOneXEachArePoints) {
  Drawn drawn;
  FigureChart chart = make_chart(FigureChart::Kind::line);
  chart.series = "x";
  drawn.figure.charts = {chart};
  for (size_t i = 3; i < 6; ++i) drawn.outcome.table.rows[i].mean[0].reset();  // theirs
  const Json spec = result_charts(drawn.outcome).at(0).spec;
  int64_t points = 0;
  for (const Json& layer : spec.at("layer"))
    points += layer.at("mark").at("type") == "point" && layer.at("encoding").at("x").at("title") == "x";
  EXPECT_EQ(points, 3) << spec.dump();
}

TEST(ResultCharts, NamedPositionsAndErrorBarsSideBySide) {
  Drawn drawn;
  drawn.figure.charts = {make_chart(FigureChart::Kind::line)};
  drawn.figure.charts[0].positions = {{"l* = 2", 2}};
  const Chart chart = result_charts(drawn.outcome).at(0);
  EXPECT_EQ(find_own_data(chart.spec).back(), Json::array({{{"x", 2}, {"name", "l* = 2"}}}));
  std::set<double> offsets;
  for (const Json& layer : chart.spec.at("layer"))
    if (layer.at("mark").contains("xOffset")) offsets.insert(layer.at("mark").at("xOffset").get<double>());
  EXPECT_EQ(offsets, (std::set<double>{-2, 0, 2}));  // the first series, the paper's bars for it, the second series
}

TEST(ResultCharts, ThePapersDeviationsAreDrawn) {
  Drawn drawn;
  drawn.figure.paper = {{{"model", "ours"}, {"x", 4}, {"y", 30}, {"y_deviation", 2.0}}};
  drawn.figure.charts = {make_chart(FigureChart::Kind::line)};
  const Chart chart = result_charts(drawn.outcome).at(0);
  const Json row = data_rows(chart, "paper").at(0);
  EXPECT_EQ(row.at("low"), 28);
  EXPECT_EQ(row.at("high"), 32);
  const auto dashed_rules = [](const Chart& of) {
    return std::ranges::count_if(of.spec.at("layer"), [](const Json& layer) {
      return layer.at("mark").contains("strokeDash") && layer.at("mark").contains("xOffset");
    });
  };
  EXPECT_EQ(dashed_rules(chart), 1);
  drawn.figure.paper[0].erase("y_deviation");
  EXPECT_EQ(dashed_rules(result_charts(drawn.outcome).at(0)), 0);
}

// The measure passes 0.5 at y = 2 + x.
TEST(HeatMapSpec, TheGuideFollowsTheContourAtHalf) {
  std::vector<ChartMark> marks;
  for (const int x : {1, 2, 3})
    for (int y = 1; y <= 6; ++y) marks.push_back({x, y, "", false, std::clamp(0.5 + 0.5 * (y - 2 - x), 0.0, 1.0), 0});
  FigureChart chart{FigureChart::Kind::heat, "x", "y", "", "share"};
  EXPECT_TRUE(find_own_data(heat_map_spec(chart, marks, "share")).empty());
  chart.guide = {"a + b x", 1, 0};
  const Json spec = heat_map_spec(chart, marks, "share"), curve = find_own_data(spec).at(0);
  EXPECT_EQ(curve.front().at("x"), 1);
  EXPECT_NEAR(curve.front().at("y").get<double>(), 3, 1e-9);
  EXPECT_NEAR(curve.back().at("y").get<double>(), 5, 1e-9);
  const Json cell = spec.at("data").at("values").at(0);  // between the middles to its neighbours
  EXPECT_EQ(cell.at("x_low"), 0.5);
  EXPECT_EQ(cell.at("y_high"), 1.5);
}

TEST(ResultCharts, LegendsShowWholeNames) {
  const std::string name(60, 'x');
  const Json legend = top_legend({name, "y"});
  EXPECT_EQ(legend.at("labelLimit"), 0);
  EXPECT_EQ(legend.at("columns"), 1);
  EXPECT_EQ(top_legend({"a", "b", "c"}).at("columns"), 9);
  EXPECT_TRUE(top_legend({"a"}).is_null());
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
