// A grey level for each cell of two axes, and a guide curve along the cells where the measure is half of its range.
#include <algorithm>
#include <cmath>
#include <map>

#include "sparsight/reproduce/chart_encodings.h"
#include "sparsight/reproduce/line_fit.h"

namespace sparsight {
namespace {

constexpr int kContourSegments = 60;

// The edges of the cells around `values`, half way to the neighbours.
std::map<double, std::pair<double, double>> cells_around(const std::vector<double>& values) {
  std::map<double, std::pair<double, double>> cells;
  for (size_t i = 0; i < values.size(); ++i) {
    const double below = i > 0 ? values[i] - values[i - 1] : values[1] - values[0];
    const double above = i + 1 < values.size() ? values[i + 1] - values[i] : below;
    cells[values[i]] = {values[i] - below / 2, values[i] + above / 2};
  }
  return cells;
}

std::vector<double> sorted_values(const std::vector<ChartMark>& marks, Json ChartMark::*axis) {
  std::vector<double> values;
  for (const ChartMark& mark : marks) values.push_back((mark.*axis).get<double>());
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// The y at which the measure first reaches `level`, for each x where it does.
std::vector<std::pair<double, double>> find_contour(const std::vector<ChartMark>& marks, double level) {
  std::map<double, std::map<double, double>> columns;
  for (const ChartMark& mark : marks) columns[mark.x.get<double>()][mark.y.get<double>()] = mark.value;
  std::vector<std::pair<double, double>> contour;
  for (const auto& [x, column] : columns)
    if (const auto y = reaches({column.begin(), column.end()}, level); y && *y > column.begin()->first)
      contour.emplace_back(x, *y);
  return contour;
}

// A curve a + b x^power through the contour at half of the range; none with fewer than three points.
void add_contour(Json& layers, const FigureGuide& guide, const std::vector<ChartMark>& marks, double level,
                 const Json& encoding) {
  std::vector<std::pair<double, double>> points;
  for (const auto& [x, y] : find_contour(marks, level))
    if (x >= guide.from) points.emplace_back(std::pow(x, guide.power), y);
  if (points.size() < 3) return;
  const LineFit fit = fit_line(points);
  const std::vector<double> xs = sorted_values(marks, &ChartMark::x);
  Json rows = Json::array();
  for (int i = 0; i <= kContourSegments; ++i) {
    const double x = xs.front() + (xs.back() - xs.front()) * i / kContourSegments;
    rows.push_back({{"x", x}, {"y", fit.offset + fit.slope * std::pow(x, guide.power)}, {"source", guide.name}});
  }
  Json colour = {{"field", "source"}, {"type", "nominal"}, {"scale", {{"range", {"#e0651a"}}}}};
  colour["legend"] = {{"orient", "top"}, {"title", nullptr}, {"labelLimit", 0}};
  layers.push_back(chart_layer({{"type", "line"}, {"clip", true}, {"strokeWidth", 2}}, encoding,
                               {{"stroke", colour}, {"order", {{"field", "x"}, {"type", "quantitative"}}}}));
  layers.back()["data"] = {{"values", rows}};
}

Json axis_spec(const char* field, const std::string& name, const std::vector<double>& values,
               const std::map<double, std::pair<double, double>>& cells) {
  return {
      {"field", field},
      {"type", "quantitative"},
      {"title", name},
      {"axis", {{"values", values}, {"grid", false}}},
      {"scale",
       {{"domain", {cells.begin()->second.first, cells.rbegin()->second.second}}, {"nice", false}, {"zero", false}}}};
}

struct HeatScale {
  Json grey, ink, text;
  double half = 0.5;
};

// Black is 0 and white is 1; the range widens for values outside.
HeatScale heat_scale(const std::vector<ChartMark>& marks, const std::string& title) {
  double low = 0, high = 1;
  for (const ChartMark& mark : marks) low = std::min(low, mark.value), high = std::max(high, mark.value);
  return {{{"field", "value"},
           {"type", "quantitative"},
           {"title", title},
           {"scale", {{"domain", {low, high}}, {"range", {"#000000", "#ffffff"}}}}},
          {{"condition", {{"test", "datum.light"}, {"value", "#000000"}}}, {"value", "#ffffff"}},
          {{"field", "value"}, {"type", "quantitative"}, {"format", ".3~g"}},
          (low + high) / 2};
}

}  // namespace

Json heat_map_spec(const FigureChart& chart, const std::vector<ChartMark>& marks, const std::string& title) {
  const HeatScale scale = heat_scale(marks, title);
  const auto numeric = [&](Json ChartMark::*axis) {
    return std::ranges::all_of(marks, [&](const ChartMark& mark) { return (mark.*axis).is_number(); }) &&
           sorted_values(marks, axis).size() > 1;
  };
  Json rows = Json::array(), cell, centre;
  for (const ChartMark& mark : marks)
    rows.push_back({{"x", mark.x}, {"y", mark.y}, {"value", mark.value}, {"light", mark.value > scale.half}});
  const bool to_scale = chart.guide && numeric(&ChartMark::x) && numeric(&ChartMark::y);
  if (to_scale) {
    const std::vector<double> xs = sorted_values(marks, &ChartMark::x), ys = sorted_values(marks, &ChartMark::y);
    const auto columns = cells_around(xs), lines = cells_around(ys);
    for (size_t i = 0; i < marks.size(); ++i) {
      const auto column = columns.at(marks[i].x.get<double>()), line = lines.at(marks[i].y.get<double>());
      rows[i].update(
          {{"x_low", column.first}, {"x_high", column.second}, {"y_low", line.first}, {"y_high", line.second}});
    }
    centre = {{"x", axis_spec("x", chart.x, xs, columns)}, {"y", axis_spec("y", chart.y, ys, lines)}};
    cell = {{"x", axis_spec("x_low", chart.x, xs, columns)},
            {"x2", {{"field", "x_high"}}},
            {"y", axis_spec("y_low", chart.y, ys, lines)},
            {"y2", {{"field", "y_high"}}}};
  } else {
    const auto axis = [](const char* field, const std::string& name, const char* order) -> Json {
      return {{"field", field}, {"type", "ordinal"}, {"title", name}, {"sort", order}, {"axis", {{"labelAngle", 0}}}};
    };
    centre = {{"x", axis("x", chart.x, "ascending")}, {"y", axis("y", chart.y, "descending")}};
    cell = centre;
  }
  Json layers = Json::array();
  layers.push_back(
      chart_layer({{"type", "rect"}, {"stroke", "#8a8a8a"}, {"strokeWidth", 0.5}}, cell, {{"color", scale.grey}}));
  layers.push_back(
      chart_layer({{"type", "text"}, {"fontSize", 11}}, centre, {{"text", scale.text}, {"color", scale.ink}}));
  if (to_scale) add_contour(layers, *chart.guide, marks, scale.half, centre);
  return {{"width", "container"}, {"height", 260}, {"data", {{"values", rows}}}, {"layer", layers}};
}

}  // namespace sparsight
