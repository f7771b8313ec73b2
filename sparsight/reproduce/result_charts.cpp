#include "sparsight/reproduce/result_charts.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/json_fields.h"
#include "sparsight/reproduce/result_text.h"

namespace sparsight {
namespace {

// The Okabe-Ito palette, as in line_chart.cpp.
const std::vector<std::string> kSeriesColours = {"#1f83c6", "#e0651a", "#12a57d", "#c76d9f",
                                                 "#d99a00", "#56b4e9", "#8a8a8a"};
constexpr const char* kOurs = "ours";
constexpr const char* kPaper = "paper";

// A data point of a chart.
struct Mark {
  Json x, y;  // y: for heat maps only
  std::string series;
  bool paper = false;
  double value = 0;
  double deviation = 0;
};

// The name of a line: its value of the series axis, and of every other axis that is not drawn and has several values.
std::string series_name(const ResultTable& table, const FigureChart& chart, const Json& settings) {
  std::string name = chart.series.empty() ? "" : value_text(settings.at(chart.series));
  const bool heat = chart.kind == FigureChart::Kind::heat;
  for (const std::string& axis : table.axes) {
    if (axis == chart.series || axis == chart.x || (heat && axis == chart.y) || table.values_of(axis).size() < 2)
      continue;
    name += (name.empty() ? "" : ", ") + value_text(settings.at(axis));
  }
  return name;
}

std::vector<Mark> all_marks(const FigureOutcome& outcome, const FigureChart& chart) {
  const ResultTable& table = outcome.table;
  const bool heat = chart.kind == FigureChart::Kind::heat;
  const std::string& measure = heat ? chart.measure : chart.y;
  std::vector<Mark> marks;
  const auto add = [&](const Json& settings, bool paper, std::optional<double> value, double deviation) {
    if (!value) return;
    marks.push_back({settings.at(chart.x), heat ? settings.at(chart.y) : Json(), series_name(table, chart, settings),
                     paper, *value, deviation});
  };
  for (const ResultRow& row : table.rows)
    add(row.settings, false, table.mean(row.settings, measure), table.deviation(row.settings, measure).value_or(0));
  // The paper's values are shown even if nothing was measured there at this scale.
  if (outcome.data.is_compared())
    for (const Json& row : outcome.figure->paper) {
      const auto known = [&](const std::string& axis) { return row.contains(axis); };
      if (std::all_of(table.axes.begin(), table.axes.end(), known)) add(row, true, number(row, measure), 0);
    }
  return marks;
}

Json rows_of(const std::vector<Mark>& marks, bool logarithmic) {
  Json rows = Json::array();
  for (const Mark& mark : marks) {
    // An error bar that reaches 0 or below cannot be drawn on a logarithmic axis.
    const double low = mark.value - mark.deviation;
    rows.push_back({{"x", mark.x},
                    {"value", mark.value},
                    {"low", logarithmic && low <= 0 ? mark.value : low},
                    {"high", mark.value + mark.deviation},
                    {"series", mark.series},
                    {"source", mark.paper ? kPaper : kOurs}});
  }
  return rows;
}

std::string title_of(const ResultTable& table, const std::string& measure) {
  for (const Measure& known : table.measures)
    if (known.key == measure) return known.title;
  return measure;
}

bool has_paper(const std::vector<Mark>& marks) {
  return std::any_of(marks.begin(), marks.end(), [](const Mark& mark) { return mark.paper; });
}

bool numeric_x(const std::vector<Mark>& marks) {
  return std::all_of(marks.begin(), marks.end(), [](const Mark& mark) { return mark.x.is_number(); });
}

bool positive(const std::vector<Mark>& marks) {
  return std::all_of(marks.begin(), marks.end(), [](const Mark& mark) { return mark.value > 0; });
}

Json colour_of(const std::vector<Mark>& marks) {
  Json names = Json::array(), colours = Json::array();
  for (const Mark& mark : marks)
    if (std::find(names.begin(), names.end(), Json(mark.series)) == names.end()) {
      colours.push_back(kSeriesColours[names.size() % kSeriesColours.size()]);
      names.push_back(mark.series);
    }
  const Json legend = names.size() > 1 ? Json{{"orient", "top"}, {"title", nullptr}, {"columns", 4}} : Json();
  return {
      {"field", "series"}, {"type", "nominal"}, {"legend", legend}, {"scale", {{"domain", names}, {"range", colours}}}};
}

Json tooltip_of(const FigureChart& chart, const std::string& title) {
  return Json::array({{{"field", "source"}, {"title", "source"}},
                      {{"field", "series"}, {"title", chart.series.empty() ? "series" : chart.series}},
                      {{"field", "x"}, {"title", chart.x}},
                      {{"field", "value"}, {"type", "quantitative"}, {"title", title}, {"format", ".4~g"}}});
}

Json value_axis(const std::string& field, const std::string& title, const Json& scale) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}, {"scale", scale}};
}

Json logarithmic_or(bool logarithmic, const Json& other) {
  return logarithmic ? Json{{"type", "log"}, {"nice", false}} : other;
}

// A layer with the shared encodings and its own.
Json layer_of(const Json& mark, Json encoding, const Json& own) {
  encoding.update(own);
  return {{"mark", mark}, {"encoding", encoding}};
}

Json filtered(Json layer, const std::string& test) {
  layer["transform"] = Json::array({{{"filter", test}}});
  return layer;
}

// Named levels: a rule across the chart, with its name at the right end.
void add_levels(Json& layers, const FigureChart& chart, const std::string& title, const Json& scale) {
  Json values = Json::array();
  for (const auto& [name, level] : chart.levels) values.push_back({{"level", level}, {"name", name}});
  if (values.empty()) return;
  const Json y = value_axis("level", title, scale);
  const Json right = {{"value", {{"expr", "width"}}}}, name = {{"field", "name"}};
  layers.push_back({{"data", {{"values", values}}},
                    {"mark", {{"type", "rule"}, {"strokeDash", {2, 3}}, {"color", "#8a8a8a"}}},
                    {"encoding", {{"y", y}}}});
  layers.push_back({{"data", {{"values", values}}},
                    {"mark", {{"type", "text"}, {"align", "right"}, {"dy", -6}, {"color", "#8a8a8a"}}},
                    {"encoding", {{"y", y}, {"x", right}, {"text", name}}}});
}

Json line_spec(const FigureChart& chart, const std::vector<Mark>& marks, const std::string& title) {
  const bool numbers = numeric_x(marks), log_y = chart.logarithmic_y && positive(marks);
  const bool log_x = chart.logarithmic_x && numbers &&
                     std::all_of(marks.begin(), marks.end(), [](const Mark& mark) { return mark.x.get<double>() > 0; });
  const Json scale = logarithmic_or(log_y, {{"zero", false}});
  Json x = {{"field", "x"}, {"type", numbers ? "quantitative" : "ordinal"}, {"title", chart.x}};
  if (numbers) x["scale"] = logarithmic_or(log_x, {{"zero", false}});
  if (!numbers) x["sort"] = nullptr;
  const Json source = {{"field", "source"},
                       {"type", "nominal"},
                       {"legend", has_paper(marks) ? Json{{"orient", "top"}, {"title", nullptr}} : Json()},
                       {"scale", {{"domain", {kOurs, kPaper}}, {"range", {{1, 0}, {5, 4}}}}}};
  const Json shared = {{"x", x}, {"y", value_axis("value", title, scale)}, {"color", colour_of(marks)}};
  const std::string ours = "datum.source === 'ours'";
  Json layers = Json::array();
  add_levels(layers, chart, title, scale);
  layers.push_back(layer_of({{"type", "line"}, {"strokeWidth", 1.8}}, shared, {{"strokeDash", source}}));
  layers.push_back(filtered(layer_of({{"type", "rule"}, {"strokeWidth", 1.2}}, shared,
                                     {{"y", value_axis("low", title, scale)}, {"y2", {{"field", "high"}}}}),
                            ours));
  layers.push_back(filtered(layer_of({{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}}, shared,
                                     {{"tooltip", tooltip_of(chart, title)}}),
                            ours));
  return {{"width", "container"}, {"height", 260}, {"data", {{"values", rows_of(marks, log_y)}}}, {"layer", layers}};
}

Json bars_spec(const FigureChart& chart, const std::vector<Mark>& marks, const std::string& title) {
  Json rows = rows_of(marks, false);
  for (Json& row : rows) row["bar"] = row["series"].get<std::string>() + " " + row["source"].get<std::string>();
  const Json scale = {{"zero", true}};
  const Json x = {
      {"field", "x"}, {"type", "ordinal"}, {"title", chart.x}, {"sort", nullptr}, {"axis", {{"labelAngle", 0}}}};
  const Json offset = {{"field", "bar"}, {"sort", nullptr}};
  Json y = value_axis("value", title, scale);
  y["stack"] = nullptr;
  const Json opacity = {{"field", "source"},
                        {"type", "ordinal"},
                        {"legend", has_paper(marks) ? Json{{"orient", "top"}, {"title", nullptr}} : Json()},
                        {"scale", {{"domain", {kOurs, kPaper}}, {"range", {1, 0.4}}}}};
  Json layers = Json::array();
  layers.push_back(
      layer_of({{"type", "bar"}}, {{"x", x}, {"xOffset", offset}, {"y", y}},
               {{"color", colour_of(marks)}, {"opacity", opacity}, {"tooltip", tooltip_of(chart, title)}}));
  layers.push_back(filtered(layer_of({{"type", "rule"}, {"color", "#6b7683"}}, {{"x", x}, {"xOffset", offset}},
                                     {{"y", value_axis("low", title, scale)}, {"y2", {{"field", "high"}}}}),
                            "datum.high > datum.low"));
  add_levels(layers, chart, title, scale);
  return {{"width", "container"}, {"height", 260}, {"data", {{"values", rows}}}, {"layer", layers}};
}

// Black is 0 and white is 1; the range widens for values outside.
Json heat_spec(const FigureChart& chart, const std::vector<Mark>& marks, const std::string& title) {
  double low = 0, high = 1;
  for (const Mark& mark : marks) low = std::min(low, mark.value), high = std::max(high, mark.value);
  Json rows = Json::array();
  for (const Mark& mark : marks)
    rows.push_back({{"x", mark.x}, {"y", mark.y}, {"value", mark.value}, {"light", mark.value > (low + high) / 2}});
  const auto axis = [](const char* field, const std::string& name, const char* order) -> Json {
    return {{"field", field}, {"type", "ordinal"}, {"title", name}, {"sort", order}, {"axis", {{"labelAngle", 0}}}};
  };
  const Json grey = {{"field", "value"},
                     {"type", "quantitative"},
                     {"title", title},
                     {"scale", {{"domain", {low, high}}, {"range", {"#000000", "#ffffff"}}}}};
  const Json ink = {{"condition", {{"test", "datum.light"}, {"value", "#000000"}}}, {"value", "#ffffff"}};
  const Json text = {{"field", "value"}, {"type", "quantitative"}, {"format", ".3~g"}};
  const Json shared = {{"x", axis("x", chart.x, "ascending")}, {"y", axis("y", chart.y, "descending")}};
  Json layers = Json::array();
  layers.push_back(
      layer_of({{"type", "rect"}, {"stroke", "#8a8a8a"}, {"strokeWidth", 0.5}}, shared, {{"color", grey}}));
  layers.push_back(layer_of({{"type", "text"}, {"fontSize", 11}}, shared, {{"text", text}, {"color", ink}}));
  return {{"width", "container"}, {"height", 260}, {"data", {{"values", rows}}}, {"layer", layers}};
}

std::vector<Chart> heat_charts(const FigureChart& chart, const std::vector<Mark>& marks, const std::string& title) {
  std::vector<Chart> charts;
  for (const bool paper : {false, true}) {
    std::vector<std::string> names;
    for (const Mark& mark : marks)
      if (mark.paper == paper && std::find(names.begin(), names.end(), mark.series) == names.end())
        names.push_back(mark.series);
    for (const std::string& name : names) {
      std::vector<Mark> those;
      for (const Mark& mark : marks)
        if (mark.paper == paper && mark.series == name) those.push_back(mark);
      charts.push_back({title + (name.empty() ? "" : ", " + name), paper ? "the paper's numbers" : "ours",
                        heat_spec(chart, those, title)});
    }
  }
  return charts;
}

}  // namespace

std::vector<Chart> result_charts(const FigureOutcome& outcome) {
  std::vector<Chart> charts;
  for (const FigureChart& chart : outcome.figure->charts) {
    const std::vector<Mark> marks = all_marks(outcome, chart);
    if (std::all_of(marks.begin(), marks.end(), [](const Mark& mark) { return mark.paper; })) continue;
    const std::string title = title_of(outcome.table, chart.kind == FigureChart::Kind::heat ? chart.measure : chart.y);
    std::string note = "Error bars: one standard deviation";
    if (has_paper(marks)) note += chart.kind == FigureChart::Kind::line ? "; dashed: the paper" : "; pale: the paper";
    if (chart.kind == FigureChart::Kind::line) {
      charts.push_back({title + " by " + chart.x, note, line_spec(chart, marks, title)});
    } else if (chart.kind == FigureChart::Kind::bars) {
      charts.push_back({title + " by " + chart.x, note, bars_spec(chart, marks, title)});
    } else {
      for (Chart& map : heat_charts(chart, marks, title)) charts.push_back(std::move(map));
    }
  }
  return charts;
}

Json standalone_chart(const Chart& chart) {
  Json spec = {{"$schema", "https://vega.github.io/schema/vega-lite/v6.json"},
               {"title", {{"text", chart.title}, {"subtitle", chart.note}, {"anchor", "start"}}},
               {"background", "white"}};
  spec.update(chart.spec);
  spec["width"] = 460;
  spec["config"] = {{"view", {{"stroke", nullptr}}}, {"axisX", {{"grid", false}}}};
  return spec;
}

}  // namespace sparsight
