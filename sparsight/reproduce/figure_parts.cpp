#include "sparsight/reproduce/figure_parts.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {
bool contains(const Json& settings, const Json& where) {
  for (const auto& [key, value] : where.items())
    if (!settings.contains(key) || settings.at(key) != value) return false;
  return true;
}

std::vector<Json> with_seeds(const std::vector<Json>& settings, int64_t seeds) {
  std::vector<Json> jobs;
  for (const Json& each : settings)
    for (int64_t seed = 0; seed < seeds; ++seed) {
      jobs.push_back(each);
      jobs.back()["seed"] = seed;
    }
  return jobs;
}

std::vector<std::pair<double, double>> measured_points(const ResultTable& table, const std::string& x,
                                                       const std::string& measure, const Json& where) {
  std::vector<std::pair<double, double>> points;
  for (const ResultRow& row : table.rows)
    if (contains(row.settings, where))
      if (const auto mean = table.mean(row.settings, measure))
        points.emplace_back(row.settings.at(x).get<double>(), *mean);
  return points;
}

std::vector<Claim> judged(std::vector<Claim> claims, const FigureRun& run) {
  if (run.scale == Scale::smoke)
    for (Claim& claim : claims) claim.holds.reset();
  return claims;
}

std::string shown_number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

}  // namespace sparsight
