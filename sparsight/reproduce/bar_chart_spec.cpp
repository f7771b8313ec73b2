// Grouped bars: ours with error bars, the paper's pale.
#include "sparsight/reproduce/chart_encodings.h"

namespace sparsight {

Json bar_chart_spec(const FigureChart& chart, const std::vector<ChartMark>& marks, const std::string& title) {
  Json rows = chart_rows(marks, false);
  for (Json& row : rows) row["bar"] = row["series"].get<std::string>() + " " + row["source"].get<std::string>();
  const Json scale = {{"zero", true}};
  const Json words_below_each_other = {{"labelAngle", 0}, {"labelExpr", "split(datum.label, ' ')"}};
  const Json x = {
      {"field", "x"}, {"type", "ordinal"}, {"title", chart.x}, {"sort", nullptr}, {"axis", words_below_each_other}};
  const Json offset = {{"field", "bar"}, {"sort", nullptr}};
  Json y = value_axis("value", title, scale);
  y["stack"] = nullptr;
  const Json opacity = {{"field", "source"},
                        {"type", "ordinal"},
                        {"legend", has_paper(marks) ? top_legend({kSourceOurs, kSourcePaper}) : Json()},
                        {"scale", {{"domain", {kSourceOurs, kSourcePaper}}, {"range", {1, 0.4}}}}};
  Json layers = Json::array();
  layers.push_back(
      chart_layer({{"type", "bar"}}, {{"x", x}, {"xOffset", offset}, {"y", y}},
                  {{"color", series_colour(marks)}, {"opacity", opacity}, {"tooltip", chart_tooltip(chart, title)}}));
  layers.push_back(filtered(chart_layer({{"type", "rule"}, {"color", "#6b7683"}}, {{"x", x}, {"xOffset", offset}},
                                        {{"y", value_axis("low", title, scale)}, {"y2", {{"field", "high"}}}}),
                            "datum.high > datum.low"));
  add_levels(layers, chart, title, scale);
  return {{"width", "container"}, {"height", 260}, {"data", {{"values", rows}}}, {"layer", layers}};
}

}  // namespace sparsight
