// What the kinds of a figure's charts share of their Vega-Lite specifications.
#pragma once

#include <string>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

// A data point of a chart.
struct ChartMark {
  Json x, y;           // y: for heat maps only
  std::string series;  // the name of its line
  bool paper = false;  // the paper's number
  double value = 0;
  double deviation = 0;
  std::string label = {};  // text beside the point, or ""
};

// The values of "source" in the data.
inline constexpr const char *kSourceOurs = "ours", *kSourcePaper = "paper";

std::vector<std::string> series_names(const std::vector<ChartMark>& marks);  // without duplicates, in order
bool has_paper(const std::vector<ChartMark>& marks);
// {"x", "value", "low", "high", "series", "source"} of each. logarithmic: error bars end above 0.
Json chart_rows(const std::vector<ChartMark>& marks, bool logarithmic);

// Encodings.
Json series_colour(const std::vector<ChartMark>& marks);
Json chart_tooltip(const FigureChart& chart, const std::string& title);
Json value_axis(const std::string& field, const std::string& title, const Json& scale);
// A legend above the chart that shows every name whole, in as many columns as fit; null for a single name.
Json top_legend(const std::vector<std::string>& names);

// A layer with the shared encodings and its own.
Json chart_layer(const Json& mark, Json encoding, const Json& own);
Json filtered(Json layer, const std::string& test);
// FigureChart::levels: a rule across the chart, with its name at the right end.
void add_levels(Json& layers, const FigureChart& chart, const std::string& title, const Json& scale);

// The specification of one chart. title: of the measure.
Json line_chart_spec(const FigureChart& chart, const std::vector<ChartMark>& marks, const std::string& title);
Json bar_chart_spec(const FigureChart& chart, const std::vector<ChartMark>& marks, const std::string& title);
Json heat_map_spec(const FigureChart& chart, const std::vector<ChartMark>& marks, const std::string& title);

}  // namespace sparsight
