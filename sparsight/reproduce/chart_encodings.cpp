#include "sparsight/reproduce/chart_encodings.h"

#include <algorithm>

#include "sparsight/report/charts/series_colours.h"

namespace sparsight {

std::vector<std::string> series_names(const std::vector<ChartMark>& marks) {
  std::vector<std::string> names;
  for (const ChartMark& mark : marks)
    if (std::ranges::find(names, mark.series) == names.end()) names.push_back(mark.series);
  return names;
}

bool has_paper(const std::vector<ChartMark>& marks) {
  return std::ranges::any_of(marks, [](const ChartMark& mark) { return mark.paper; });
}

Json chart_rows(const std::vector<ChartMark>& marks, bool logarithmic) {
  Json rows = Json::array();
  for (const ChartMark& mark : marks) {
    const double low = mark.value - mark.deviation;
    rows.push_back({{"x", mark.x},
                    {"value", mark.value},
                    {"low", logarithmic && low <= 0 ? mark.value : low},
                    {"high", mark.value + mark.deviation},
                    {"series", mark.series},
                    {"source", mark.paper ? kSourcePaper : kSourceOurs}});
    if (!mark.label.empty()) rows.back()["label"] = mark.label;
  }
  return rows;
}

Json top_legend(const std::vector<std::string>& names) {
  constexpr size_t kWidth = 440, kSymbol = 40, kLetter = 7;  // in pixels
  size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  if (names.size() < 2) return {};
  return {{"orient", "top"},
          {"title", nullptr},
          {"labelLimit", 0},
          {"columns", std::max<size_t>(1, kWidth / (kSymbol + kLetter * longest))}};
}

Json series_colour(const std::vector<ChartMark>& marks) {
  const std::vector<std::string> names = series_names(marks);
  Json colours = Json::array();
  for (size_t i = 0; i < names.size(); ++i) colours.push_back(series_colour_at(i));
  return {{"field", "series"},
          {"type", "nominal"},
          {"legend", top_legend(names)},
          {"scale", {{"domain", names}, {"range", colours}}}};
}

Json chart_tooltip(const FigureChart& chart, const std::string& title) {
  return Json::array({{{"field", "source"}, {"title", "source"}},
                      {{"field", "series"}, {"title", chart.series.empty() ? "series" : chart.series}},
                      {{"field", "x"}, {"title", chart.x}},
                      {{"field", "value"}, {"type", "quantitative"}, {"title", title}, {"format", ".4~g"}}});
}

Json value_axis(const std::string& field, const std::string& title, const Json& scale) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}, {"scale", scale}};
}

Json chart_layer(const Json& mark, Json encoding, const Json& own) {
  encoding.update(own);
  return {{"mark", mark}, {"encoding", encoding}};
}

Json filtered(Json layer, const std::string& test) {
  layer["transform"] = Json::array({{{"filter", test}}});
  return layer;
}

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

}  // namespace sparsight
