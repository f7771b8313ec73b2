#include "sparsight/reproduce/figure_claims.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/log_slope.h"

namespace sparsight {
namespace {

using Points = std::vector<std::pair<double, double>>;

std::vector<Json> rows_with(const ResultTable& table, const Json& where) {
  std::vector<Json> rows;
  for (const ResultRow& row : table.rows)
    if (contains(row.settings, where)) rows.push_back(row.settings);
  return rows;
}

// "samples 300, model joint" of the axes that `where` leaves open.
std::string place_text(const Json& settings, const Json& where) {
  std::vector<std::string> parts;
  for (const auto& [axis, value] : settings.items())
    if (!where.contains(axis))
      parts.push_back(cat(axis, " ", value.is_string() ? value.get<std::string>() : shown(value)));
  return parts.empty() ? "" : "at " + join(parts);
}

Claim bounded(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
              const Json& where, bool from_below) {
  std::vector<Margin> margins;
  for (const Json& row : rows_with(table, where))
    margins.push_back({from_below ? above(row, measure, bound) : below(row, measure, bound), place_text(row, where)});
  const MarginTest test{
      .ties = true, .unit = cat(from_below ? "above " : "below ", shown_number(bound)), .decimals = 2};
  return judge(table, text, margins, test);
}

std::optional<double> mean_at(const SeedMeans& mean, const CurvePair& pair, const std::string& name, const Json& x) {
  return mean({{pair.series, name}, {pair.x, x}}, pair.measure);
}

Points curve_points(const SeedMeans& mean, const CurvePair& pair, const std::string& name) {
  return mean_curve(mean, pair.x, pair.measure, {{pair.series, name}});
}

std::string at_x(const CurvePair& pair, const Json& x) { return cat("at ", shown(x), " ", pair.x); }

// The mean over all rows with this value of one axis.
std::optional<double> mean_over(const SeedMeans& mean, const std::string& axis, const Json& value,
                                const std::string& measure) {
  double sum = 0;
  int64_t count = 0;
  for (const Json& row : rows_with(mean.table(), {{axis, value}}))
    if (const auto found = mean(row, measure)) sum += *found, ++count;
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

Claim between_ends(const ResultTable& table, const std::string& text, const std::string& axis,
                   const std::string& measure, double sign) {
  const std::vector<Json> values = table.axis_values(axis);
  if (values.size() < 2) return {text, "not measured", std::nullopt};
  const Json first = values.front(), last = values.back();
  const SeedMeans all(table);
  const auto begin = mean_over(all, axis, first, measure), end = mean_over(all, axis, last, measure);
  if (!begin || !end) return {text, "not measured", std::nullopt};
  MarginTest test;
  test.measured = cat(fixed(*begin, 0), " % at ", shown(first), ", ", fixed(*end, 0), " % at ", shown(last), " ", axis,
                      "; difference ", fixed(*end - *begin, 0));
  return judge(table, text, {{[=](const SeedMeans& mean) -> std::optional<double> {
                 const auto low = mean_over(mean, axis, first, measure), high = mean_over(mean, axis, last, measure);
                 return low && high ? std::optional(sign * (*high - *low)) : std::nullopt;
               }}},
               test);
}

// The x at which ours and theirs reach a level, of some seeds.
struct ReachedAt {
  double ours = 0, theirs = 0, level = 0;
  bool from_start = false;  // ours possibly with less than its first x
  bool never = false;       // ours not up to its last x, which stands in
};

std::optional<ReachedAt> reached_at(const SeedMeans& mean, const CurvePair& pair, std::optional<double> level) {
  const Points ours = curve_points(mean, pair, pair.ours), theirs = curve_points(mean, pair, pair.theirs);
  if (ours.empty() || theirs.empty()) return std::nullopt;
  const auto they = level ? reaches(theirs, *level) : theirs.back().first;
  if (!they) return std::nullopt;
  ReachedAt at{0, *they, level.value_or(theirs.back().second)};
  const auto needed = reaches(ours, at.level);
  at.never = !needed;
  at.ours = needed.value_or(ours.back().first);
  at.from_start = needed && *needed <= ours.front().first;
  return at;
}

std::string share_text(const ReachedAt& at, const CurvePair& pair, bool at_last) {
  const std::string which = at.from_start ? "at most " : at.never ? "more than " : "";
  return cat(at_last ? fixed(at.level, 1) + " % with " : "", which, fixed(at.ours, 0), " of ", fixed(at.theirs, 0), " ",
             pair.x, ": ", fixed(100 * at.ours / at.theirs, 0), " %",
             at.from_start ? " (the first point measured)"
             : at.never    ? " (the last point measured)"
                           : "");
}

std::optional<double> last_gap(const SeedMeans& mean, const CurvePair& pair) {
  const Points ours = curve_points(mean, pair, pair.ours), theirs = curve_points(mean, pair, pair.theirs);
  if (ours.empty() || theirs.empty() || ours.back().first != theirs.back().first) return std::nullopt;
  return ours.back().second - theirs.back().second;
}

}  // namespace

std::vector<std::pair<double, double>> mean_curve(const SeedMeans& mean, const std::string& x,
                                                  const std::string& measure, const Json& where) {
  Points points;
  for (const Json& row : rows_with(mean.table(), where))
    if (const auto value = mean(row, measure)) points.emplace_back(row.at(x).get<double>(), *value);
  std::sort(points.begin(), points.end());
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

Claim above_everywhere(const ResultTable& table, const std::string& text, const CurvePair& pair, bool ties_count) {
  std::vector<Margin> margins;
  for (const Json& x : table.axis_values(pair.x))
    margins.push_back({row_difference({{pair.series, pair.ours}, {pair.x, x}},
                                      {{pair.series, pair.theirs}, {pair.x, x}}, pair.measure),
                       at_x(pair, x)});
  return judge(table, text, margins, {.ties = ties_count});
}

Claim reached_with_share(const ResultTable& table, const std::string& text, const CurvePair& pair,
                         std::optional<double> level, double share) {
  const SeedMeans all(table);
  if (curve_points(all, pair, pair.ours).empty() || curve_points(all, pair, pair.theirs).empty())
    return {text, "not measured", std::nullopt};
  const auto found = reached_at(all, pair, level);
  if (!found) return {text, cat(pair.theirs, " does not reach it here"), std::nullopt};
  Margin margin{[=](const SeedMeans& mean) -> std::optional<double> {
    const auto at = reached_at(mean, pair, level);
    return at ? std::optional(100 * (share - at->ours / at->theirs)) : std::nullopt;
  }};
  if (found->from_start) margin.bound = Margin::Bound::lower;
  if (found->never) margin.bound = Margin::Bound::upper;
  MarginTest test{.ties = true, .decimals = 0};
  test.measured = cat(share_text(*found, pair, !level), "; ", fixed(100 * share, 0), " % minus that");
  return judge(table, text, {margin}, test);
}

Claim larger_gap(const ResultTable& table, const std::string& text, const CurvePair& here, const CurvePair& there) {
  const SeedMeans all(table);
  const auto gap = last_gap(all, here), other = last_gap(all, there);
  if (!gap || !other) return {text, "results are missing", std::nullopt};
  MarginTest test;
  test.measured = cat(fixed(*gap, 1), " points against ", fixed(*other, 1), " with ",
                      fixed(curve_points(all, here, here.ours).back().first, 0), " ", here.x, "; difference ",
                      fixed(*gap - *other, 1));
  return judge(table, text, {{[=](const SeedMeans& mean) -> std::optional<double> {
                 const auto ours = last_gap(mean, here), theirs = last_gap(mean, there);
                 return ours && theirs ? std::optional(*ours - *theirs) : std::nullopt;
               }}},
               test);
}

Claim min_ratio(const ResultTable& table, const std::string& text, const CurvePair& pair, double ratio) {
  std::vector<Margin> margins;
  const auto ratio_at = [pair](const SeedMeans& mean, const Json& x) -> std::optional<double> {
    const auto ours = mean_at(mean, pair, pair.ours, x), theirs = mean_at(mean, pair, pair.theirs, x);
    return ours && theirs && *ours > 0 ? std::optional(*theirs / *ours) : std::nullopt;
  };
  std::vector<std::string> ratios;
  for (const Json& x : table.axis_values(pair.x)) {
    margins.push_back({[=](const SeedMeans& mean) -> std::optional<double> {
                         const auto found = ratio_at(mean, x);
                         return found ? std::optional(*found - ratio) : std::nullopt;
                       },
                       at_x(pair, x)});
    if (const auto found = ratio_at(SeedMeans(table), x)) ratios.push_back(cat(fixed(*found, 2), " with ", shown(x)));
  }
  if (ratios.empty()) return {text, "no pair of results", std::nullopt};
  MarginTest test{.ties = true, .decimals = 2};
  test.measured = cat("ratios ", join(ratios), "; the least minus ", shown_number(ratio));
  return judge(table, text, margins, test);
}

Claim rises_between_ends(const ResultTable& table, const std::string& text, const std::string& axis,
                         const std::string& measure) {
  return between_ends(table, text, axis, measure, 1);
}

Claim falls_between_ends(const ResultTable& table, const std::string& text, const std::string& axis,
                         const std::string& measure) {
  return between_ends(table, text, axis, measure, -1);
}

Claim slope_within(const ResultTable& table, const std::string& text, const std::string& x, const std::string& measure,
                   Interval range) {
  const Statistic slope = [=](const SeedMeans& mean) -> std::optional<double> {
    const Points points = mean_curve(mean, x, measure);
    if (points.size() < 2) return std::nullopt;
    return log_log_slope(points);
  };
  const auto found = slope(SeedMeans(table));
  if (!found) return {text, "not measured", std::nullopt};
  const auto beyond = [slope](double end, double sign) {
    return [=](const SeedMeans& mean) -> std::optional<double> {
      const auto value = slope(mean);
      return value ? std::optional(sign * (*value - end)) : std::nullopt;
    };
  };
  MarginTest test{.ties = true, .decimals = 3};
  test.measured = cat("slope ", fixed(*found, 3), "; distance to the nearer end of ", shown_number(range.low), " to ",
                      shown_number(range.high));
  return judge(table, text, {{beyond(range.low, 1), "to the lower end"}, {beyond(range.high, -1), "to the upper end"}},
               test);
}

}  // namespace sparsight
