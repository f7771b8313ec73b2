#include "sparsight/reproduce/figure_claims.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight {
namespace {

using Points = std::vector<std::pair<double, double>>;

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
  if (found.empty()) return {text, "not measured", std::nullopt};
  const auto [least, most] = std::minmax_element(found.begin(), found.end());
  if (from_below) return {text, cat("the minimum of ", found.size(), " is ", shown_number(*least)), *least >= bound};
  return {text, cat("the maximum of ", found.size(), " is ", shown_number(*most)), *most <= bound};
}

// In order of x.
Points points_of(const ResultTable& table, const CurvePair& pair, const std::string& name) {
  Points points = measured_points(table, pair.x, pair.measure, {{pair.series, name}});
  std::sort(points.begin(), points.end());
  return points;
}

std::optional<double> mean_at(const ResultTable& table, const CurvePair& pair, const std::string& name, const Json& x) {
  return table.mean({{pair.series, name}, {pair.x, x}}, pair.measure);
}

// The mean of a measure over all rows with this value of one axis.
double mean_over(const ResultTable& table, const std::string& axis, const Json& value, const std::string& measure) {
  const std::vector<double> found = means(table, measure, {{axis, value}});
  double sum = 0;
  for (const double mean : found) sum += mean;
  return found.empty() ? 0 : sum / static_cast<double>(found.size());
}

Claim between_ends(const ResultTable& table, const std::string& text, const std::string& axis,
                   const std::string& measure, bool rises) {
  const std::vector<Json> values = table.values_of(axis);
  if (values.size() < 2) return {text, "not measured", std::nullopt};
  const double first = mean_over(table, axis, values.front(), measure),
               last = mean_over(table, axis, values.back(), measure);
  return {text,
          cat(fixed(first, 0), " % at ", values.front().get<int64_t>(), ", ", fixed(last, 0), " % at ",
              values.back().get<int64_t>(), " ", axis),
          rises ? last > first : last < first};
}

}  // namespace

Claim all_at_least(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                   const Json& where) {
  return bounded(table, text, measure, bound, where, true);
}

Claim all_at_most(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                  const Json& where) {
  return bounded(table, text, measure, bound, where, false);
}

Claim above_everywhere(const ResultTable& table, const std::string& text, const CurvePair& pair, bool ties_count) {
  const Claim unknown{text, "not measured", std::nullopt};
  std::optional<double> least;
  Json where;
  for (const Json& x : table.values_of(pair.x)) {
    const auto ours = mean_at(table, pair, pair.ours, x), theirs = mean_at(table, pair, pair.theirs, x);
    if (!ours || !theirs) return unknown;
    if (!least || *ours - *theirs < *least) least = *ours - *theirs, where = x;
  }
  if (!least) return unknown;
  return {text, cat("at least ", fixed(*least, 1), " points (at ", where.dump(), " ", pair.x, ")"),
          ties_count ? *least >= 0 : *least > 0};
}

Claim reached_with_share(const ResultTable& table, const std::string& text, const CurvePair& pair,
                         std::optional<double> level, double share) {
  const Points ours = points_of(table, pair, pair.ours), theirs = points_of(table, pair, pair.theirs);
  if (ours.empty() || theirs.empty()) return {text, "not measured", std::nullopt};
  const std::string prefix = level ? "" : fixed(theirs.back().second, 1) + " % with ";
  const auto they = level ? reaches(theirs, *level) : theirs.back().first;
  if (!they) return {text, cat(pair.theirs, " does not reach it here"), std::nullopt};
  const double wanted = level.value_or(theirs.back().second);
  const auto needed = reaches(ours, wanted);
  if (!needed) {
    std::optional<bool> holds;
    if (ours.back().first >= share * *they) holds = false;
    return {text, cat(pair.ours, " does not reach ", fixed(wanted, 1), " %"), holds};
  }
  const bool first = *needed <= ours.front().first;  // possibly with even fewer
  return {text,
          cat(prefix, first ? "at most " : "", fixed(*needed, 0), " of ", fixed(*they, 0), " ", pair.x, ": ",
              fixed(100 * *needed / *they, 0), " %"),
          *needed <= share * *they};
}

Claim larger_gap(const ResultTable& table, const std::string& text, const CurvePair& here, const CurvePair& there) {
  const Points ours = points_of(table, here, here.ours), theirs = points_of(table, here, here.theirs),
               other_ours = points_of(table, there, there.ours), other_theirs = points_of(table, there, there.theirs);
  if (ours.empty() || theirs.empty() || other_ours.empty() || other_theirs.empty())
    return {text, "results are missing", std::nullopt};
  const double gap = ours.back().second - theirs.back().second,
               other = other_ours.back().second - other_theirs.back().second;
  return {text,
          cat(fixed(gap, 1), " points against ", fixed(other, 1), " with ", fixed(theirs.back().first, 0), " ", here.x),
          gap > other};
}

Claim min_ratio(const ResultTable& table, const std::string& text, const CurvePair& pair, double ratio) {
  std::vector<std::string> ratios;
  bool holds = true;
  for (const Json& x : table.values_of(pair.x)) {
    const auto ours = mean_at(table, pair, pair.ours, x), theirs = mean_at(table, pair, pair.theirs, x);
    if (!ours || !theirs || *ours <= 0) continue;
    ratios.push_back(cat(fixed(*theirs / *ours, 2), " with ", fixed(x.get<double>(), 0)));
    holds = holds && *theirs / *ours >= ratio;
  }
  if (ratios.empty()) return {text, "no pair of results", std::nullopt};
  return {text, "ratios " + join(ratios), holds};
}

Claim rises_between_ends(const ResultTable& table, const std::string& text, const std::string& axis,
                         const std::string& measure) {
  return between_ends(table, text, axis, measure, true);
}

Claim falls_between_ends(const ResultTable& table, const std::string& text, const std::string& axis,
                         const std::string& measure) {
  return between_ends(table, text, axis, measure, false);
}

}  // namespace sparsight
