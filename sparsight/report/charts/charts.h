// The charts of a report as Vega-Lite specifications (https://vega.github.io/vega-lite/docs/spec.html): pure functions
// of metrics. Colours of text and background come from the page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sparsight/report/run/run_metrics.h"

namespace sparsight {

struct Chart {
  std::string title;
  std::string note;  // one line on how to read it
  Json spec;
};

// Loss, accuracy, auxiliary losses, learning rate, images/s: those that the log has numbers for.
std::vector<Chart> training_charts(const RunMetrics& log);

// Balance over time (coefficients of variation of load and importance), then the expert load over time of every layer.
std::vector<Chart> expert_charts(const RunMetrics& log);

// The encoding of the colour of a map by its field "share", from 0.
Json share_color();

}  // namespace sparsight
