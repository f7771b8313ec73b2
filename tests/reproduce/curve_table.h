// Tables of curves for tests: accuracy against samples, a curve for each model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/reproduce/figure.h"

namespace sparsight::testing {

struct CurvePoint {
  std::string model;
  int64_t samples;
  std::optional<double> accuracy;
};

inline ResultTable curve_table(const std::vector<CurvePoint>& points) {
  ResultTable table;
  table.axes = {"model", "samples"};
  table.measures = {{"accuracy", "test accuracy (%)"}};
  for (const CurvePoint& point : points) {
    ResultRow row;
    row.settings = {{"model", point.model}, {"samples", point.samples}};
    row.trials = 1;
    row.mean = {point.accuracy};
    row.deviation = {0.0};
    row.paper = {std::nullopt};
    table.rows.push_back(row);
  }
  return table;
}

}  // namespace sparsight::testing
