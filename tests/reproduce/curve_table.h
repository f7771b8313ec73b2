// Tables of curves for tests: accuracy against samples, a curve for each model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/reproduce/results.h"

namespace sparsight::testing {

struct CurvePoint {
  std::string model;
  int64_t samples;
  std::vector<std::optional<double>> accuracies;  // of seeds 0, 1, ...
};

inline ResultTable curve_table(const std::vector<CurvePoint>& points) {
  Figure figure;
  figure.axes = {"model", "samples"};
  figure.measures = {{"accuracy", "test accuracy (%)"}};
  std::vector<Json> jobs, results;
  for (const CurvePoint& point : points)
    for (size_t seed = 0; seed < point.accuracies.size(); ++seed) {
      const auto& accuracy = point.accuracies[seed];
      jobs.push_back({{"model", point.model}, {"samples", point.samples}, {"seed", seed}});
      results.push_back({{"accuracy", accuracy ? Json(*accuracy) : Json()}});
    }
  return make_table(figure, jobs, results, true);
}

}  // namespace sparsight::testing
