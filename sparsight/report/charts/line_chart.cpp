#include "sparsight/report/charts/line_chart.h"

#include <algorithm>

#include "sparsight/report/charts/series_colours.h"

namespace sparsight {

namespace {

std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points) {
  const size_t run = (points.size() + kMaxPoints - 1) / kMaxPoints;
  if (run <= 1) return points;
  std::vector<std::pair<double, double>> means;
  for (size_t begin = 0; begin < points.size(); begin += run) {
    const size_t end = std::min(begin + run, points.size());
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += points[i].second;
    means.emplace_back(points[end - 1].first, sum / static_cast<double>(end - begin));
  }
  return means;
}

// A bar from the low to the high end of each point that has them.
Json interval_layer(const Axis& axis) {
  return {{"transform", Json::array({{{"filter", "isValid(datum.low)"}}})},
          {"mark", {{"type", "rule"}, {"strokeWidth", 1.2}}},
          {"encoding",
           {{"y", {{"field", "low"}, {"type", "quantitative"}, {"title", axis.title}}}, {"y2", {{"field", "high"}}}}}};
}

Json x_scale(const Axis& axis) {
  if (axis.x_linear_up_to > 0) return {{"type", "symlog"}, {"constant", axis.x_linear_up_to}, {"nice", false}};
  return {{"zero", false}, {"nice", false}};
}

}  // namespace

Json line_chart(const std::vector<Series>& series, const Axis& axis) {
  Json rows = Json::array(), names = Json::array(), colours = Json::array();
  bool positive = true, any_measured = false, any_interval = false;
  for (size_t i = 0; i < series.size(); ++i) {
    if (series[i].points.empty()) continue;
    names.push_back(series[i].name);
    colours.push_back(series_colour_at(i));
    any_measured = any_measured || series[i].measured;
    const auto points = thinned(series[i].points);
    const bool intervals = series[i].intervals.size() == points.size();  // not of points that were averaged
    any_interval = any_interval || intervals;
    for (size_t j = 0; j < points.size(); ++j) {
      const auto& [step, value] = points[j];
      positive = positive && value > 0;
      rows.push_back({{"step", step}, {"value", value}, {"series", series[i].name}, {"measured", series[i].measured}});
      if (intervals)
        rows.back().update({{"low", series[i].intervals[j].first}, {"high", series[i].intervals[j].second}});
    }
  }
  if (rows.empty()) return Json();

  const Json scale =
      axis.logarithmic && positive ? Json{{"type", "log"}, {"nice", false}} : Json{{"zero", axis.from_zero}};
  Json y = {{"field", "value"}, {"type", "quantitative"}, {"title", axis.title}, {"scale", scale}};
  y["axis"] = Json{{"format", axis.format}};
  const Json x = {{"field", "step"}, {"type", "quantitative"}, {"title", axis.x_title}, {"scale", x_scale(axis)}};
  const Json legend = names.size() > 1 ? Json{{"orient", "top"}, {"title", nullptr}, {"columns", 4}} : Json();
  const Json colour = {
      {"field", "series"}, {"type", "nominal"}, {"legend", legend}, {"scale", {{"domain", names}, {"range", colours}}}};
  const Json tooltip =
      Json::array({{{"field", "series"}, {"title", "series"}},
                   {{"field", "step"}, {"type", "quantitative"}, {"title", axis.x_title}, {"format", axis.x_format}},
                   {{"field", "value"}, {"type", "quantitative"}, {"format", axis.format}}});
  const Json hover = {{"name", "hover"},
                      {"select",
                       {{"type", "point"},
                        {"nearest", true},
                        {"on", "pointerover"},
                        {"clear", "pointerout"},
                        {"fields", {"step", "series"}}}}};
  const Json opacity = {{"condition", {{"param", "hover"}, {"empty", false}, {"value", 1}}}, {"value", 0}};
  Json layers = Json::array({{{"mark", {{"type", "line"}, {"strokeWidth", 1.8}}}}});
  if (any_measured)
    layers.push_back({{"transform", Json::array({{{"filter", "datum.measured"}}})},
                      {"mark", {{"type", "point"}, {"filled", true}, {"size", 28}}}});
  if (any_interval) layers.push_back(interval_layer(axis));
  layers.push_back({{"params", Json::array({hover})},
                    {"mark", {{"type", "point"}, {"filled", true}, {"size", 80}}},
                    {"encoding", {{"opacity", opacity}, {"tooltip", tooltip}}}});
  return {{"width", "container"},
          {"height", 220},
          {"data", {{"values", rows}}},
          {"encoding", {{"x", x}, {"y", y}, {"color", colour}}},
          {"layer", layers}};
}

}  // namespace sparsight
