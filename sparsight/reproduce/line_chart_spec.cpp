// Lines through the means of each series: ours with error bars, the paper's dashed, guide curves dotted.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sparsight/reproduce/chart_encodings.h"
#include "sparsight/reproduce/line_fit.h"

namespace sparsight {
namespace {

constexpr int kGuideSegments = 40;
// In pixels, so that error bars stand side by side: of different series, and of a series and the paper's numbers for
// it.
constexpr double kSeriesOffset = 4, kPaperOffset = 2;

bool numeric_x(const std::vector<ChartMark>& marks) {
  return std::ranges::all_of(marks, [](const ChartMark& mark) { return mark.x.is_number(); });
}

bool all_positive(const std::vector<ChartMark>& marks, bool x) {
  return std::ranges::all_of(marks, [x](const ChartMark& mark) { return (x ? mark.x.get<double>() : mark.value) > 0; });
}

// Measured at one x only, beside a series with several: a reference line across the chart. If every series has one, x
// is what tells them apart, and they are points.
bool is_reference(const std::vector<ChartMark>& marks, const std::string& series) {
  std::map<std::string, std::set<Json>> at;
  for (const ChartMark& mark : marks) at[mark.series].insert(mark.x);
  return at[series].size() == 1 && std::ranges::any_of(at, [](const auto& other) { return other.second.size() > 1; });
}

// The rows of a curve a + b x^power through the means of ours.
void add_guide(Json& rows, const FigureGuide& guide, const std::vector<ChartMark>& marks, const std::string& series) {
  std::vector<std::pair<double, double>> points;
  double end = guide.from;
  for (const ChartMark& mark : marks) {
    if (mark.paper || mark.series != series || mark.x.get<double>() < guide.from) continue;
    end = std::max(end, mark.x.get<double>());
    points.emplace_back(std::pow(mark.x.get<double>(), guide.power), mark.value);
  }
  if (points.size() < 3) return;
  const LineFit fit = fit_line(points);
  const double begin = std::pow(points.front().first, 1 / guide.power);
  for (int i = 0; i <= kGuideSegments; ++i) {
    const double x = begin + (end - begin) * i / kGuideSegments;
    rows.push_back({{"x", x},
                    {"value", fit.offset + fit.slope * std::pow(x, guide.power)},
                    {"series", series},
                    {"source", guide.name}});
  }
}

void add_positions(Json& layers, const FigureChart& chart, const Json& x) {
  Json values = Json::array(), field = x;
  for (const auto& [name, position] : chart.positions) values.push_back({{"x", position}, {"name", name}});
  if (values.empty()) return;
  layers.push_back({{"data", {{"values", values}}},
                    {"mark", {{"type", "rule"}, {"strokeDash", {2, 3}}, {"color", "#8a8a8a"}}},
                    {"encoding", {{"x", field}}}});
  layers.push_back({{"data", {{"values", values}}},
                    {"mark", {{"type", "text"}, {"align", "left"}, {"dx", 4}, {"dy", 6}, {"color", "#8a8a8a"}}},
                    {"encoding", {{"x", field}, {"y", {{"value", 0}}}, {"text", {{"field", "name"}}}}}});
}

struct LineEncodings {
  Json shared, y, low_to_high, source, tooltip;
};

// Has the paper deviations for this series? A layer without data would stretch the axes to infinity.
bool has_paper_bars(const std::vector<ChartMark>& marks, const std::string& series) {
  return std::ranges::any_of(
      marks, [&](const ChartMark& mark) { return mark.paper && mark.series == series && mark.deviation > 0; });
}

bool has_labels(const std::vector<ChartMark>& marks, const std::string& series) {
  return std::ranges::any_of(
      marks, [&](const ChartMark& mark) { return !mark.paper && mark.series == series && !mark.label.empty(); });
}

// A line, error bars, points and their labels of one series, a little to the side of the others'.
void add_series(Json& layers, const LineEncodings& with, const std::vector<ChartMark>& marks, const std::string& series,
                double offset) {
  const std::string own = "datum.series === " + Json(series).dump(), ours = own + " && datum.source === 'ours'",
                    paper = own + " && datum.source === 'paper' && datum.high > datum.low";
  const Json dash = {{"strokeDash", with.source}};
  if (is_reference(marks, series)) {
    layers.push_back(filtered(chart_layer({{"type", "rule"}, {"strokeWidth", 1.4}},
                                          {{"y", with.y}, {"color", with.shared.at("color")}}, dash),
                              own));
    return;
  }
  const auto mark = [&](Json properties, double more = 0) {
    properties["xOffset"] = offset + more;
    return properties;
  };
  layers.push_back(filtered(chart_layer(mark({{"type", "line"}, {"strokeWidth", 1.8}}), with.shared, dash), own));
  layers.push_back(
      filtered(chart_layer(mark({{"type", "rule"}, {"strokeWidth", 1.2}}), with.shared, with.low_to_high), ours));
  if (has_paper_bars(marks, series))
    layers.push_back(
        filtered(chart_layer(mark({{"type", "rule"}, {"strokeWidth", 1}, {"strokeDash", {2, 2}}}, kPaperOffset),
                             with.shared, with.low_to_high),
                 paper));
  layers.push_back(filtered(chart_layer(mark({{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}}),
                                        with.shared, {{"tooltip", with.tooltip}}),
                            ours));
  if (has_labels(marks, series))
    layers.push_back(filtered(chart_layer(mark({{"type", "text"}, {"align", "center"}, {"dy", 14}, {"fontSize", 9}}),
                                          with.shared, {{"text", {{"field", "label"}}}}),
                              ours));
}

}  // namespace

Json line_chart_spec(const FigureChart& chart, const std::vector<ChartMark>& marks, const std::string& title) {
  const bool numbers = numeric_x(marks), log_y = chart.logarithmic_y && all_positive(marks, false),
             log_x = chart.logarithmic_x && numbers && all_positive(marks, true);
  const auto make_scale = [](bool logarithmic) -> Json {
    return logarithmic ? Json{{"type", "log"}, {"nice", false}} : Json{{"zero", false}};
  };
  const Json scale = make_scale(log_y);
  Json x = {{"field", "x"}, {"type", numbers ? "quantitative" : "ordinal"}, {"title", chart.x}};
  if (std::ranges::all_of(marks, [](const ChartMark& mark) { return mark.x.is_number_integer(); }))
    x["axis"] = {{"tickMinStep", 1}};
  if (numbers) x["scale"] = make_scale(log_x);
  if (!numbers) x["sort"] = nullptr;

  const std::vector<std::string> series = series_names(marks);
  Json rows = chart_rows(marks, log_y);
  std::vector<std::string> sources = {kSourceOurs};
  if (has_paper(marks)) sources.emplace_back(kSourcePaper);
  const size_t measured = rows.size();
  if (chart.guide && numbers)
    for (const std::string& name : series) add_guide(rows, *chart.guide, marks, name);
  if (rows.size() > measured) sources.push_back(chart.guide->name);
  Json dashes = Json::array();
  for (const std::string& source : sources)
    dashes.push_back(source == kSourceOurs ? Json{1, 0} : source == kSourcePaper ? Json{5, 4} : Json{1, 3});
  const LineEncodings with{{{"x", x}, {"y", value_axis("value", title, scale)}, {"color", series_colour(marks)}},
                           value_axis("value", title, scale),
                           {{"y", value_axis("low", title, scale)}, {"y2", {{"field", "high"}}}},
                           {{"field", "source"},
                            {"type", "nominal"},
                            {"legend", top_legend(sources)},
                            {"scale", {{"domain", sources}, {"range", dashes}}}},
                           chart_tooltip(chart, title)};
  Json layers = Json::array();
  add_levels(layers, chart, title, scale);
  add_positions(layers, chart, x);
  for (size_t i = 0; i < series.size(); ++i)
    add_series(layers, with, marks, series[i],
               kSeriesOffset * (static_cast<double>(i) - static_cast<double>(series.size() - 1) / 2));
  return {{"width", "container"}, {"height", 260}, {"data", {{"values", rows}}}, {"layer", layers}};
}

}  // namespace sparsight
