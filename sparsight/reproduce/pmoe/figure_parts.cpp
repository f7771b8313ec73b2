#include "sparsight/reproduce/pmoe/figure_parts.h"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

bool contains(const Json& settings, const Json& where) {
  for (const auto& [key, value] : where.items())
    if (!settings.contains(key) || settings.at(key) != value) return false;
  return true;
}

std::vector<double> means(const ResultTable& table, const std::string& measure, const Json& where) {
  std::vector<double> found;
  for (const ResultRow& row : table.rows)
    if (contains(row.settings, where))
      if (const auto mean = table.mean(row.settings, measure)) found.push_back(*mean);
  return found;
}

Claim bounded(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
              const Json& where, bool from_below) {
  const std::vector<double> found = means(table, measure, where);
  if (found.empty()) return {text, "nothing was measured", std::nullopt};
  const auto [least, most] = std::minmax_element(found.begin(), found.end());
  if (from_below) return {text, cat("the least of ", found.size(), " is ", shown_number(*least)), *least >= bound};
  return {text, cat("the largest of ", found.size(), " is ", shown_number(*most)), *most <= bound};
}

}  // namespace

std::vector<Json> with_seeds(const std::vector<Json>& settings, int64_t seeds) {
  std::vector<Json> jobs;
  for (const Json& each : settings)
    for (int64_t seed = 0; seed < seeds; ++seed) {
      jobs.push_back(each);
      jobs.back()["seed"] = seed;
    }
  return jobs;
}

std::vector<std::pair<double, double>> curve(const ResultTable& table, const std::string& x, const std::string& measure,
                                             const Json& where) {
  std::vector<std::pair<double, double>> points;
  for (const ResultRow& row : table.rows)
    if (contains(row.settings, where))
      if (const auto mean = table.mean(row.settings, measure))
        points.emplace_back(row.settings.at(x).get<double>(), *mean);
  return points;
}

Claim all_at_least(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                   const Json& where) {
  return bounded(table, text, measure, bound, where, true);
}

Claim all_at_most(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                  const Json& where) {
  return bounded(table, text, measure, bound, where, false);
}

std::string shown_number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

}  // namespace sparsight
