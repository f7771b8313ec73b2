#include "sparsight/reproduce/results.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/eval/statistics.h"

namespace sparsight {
namespace {

const std::vector<std::string> kScales = {"smoke", "small", "paper"};

bool same_on(const std::vector<std::string>& axes, const Json& a, const Json& b) {
  return std::all_of(axes.begin(), axes.end(),
                     [&](const std::string& axis) { return member(a, axis) == member(b, axis); });
}

bool names_all(const std::vector<std::string>& axes, const Json& settings) {
  return std::all_of(axes.begin(), axes.end(), [&](const std::string& axis) { return settings.contains(axis); });
}

struct Moments {
  std::optional<double> mean, deviation;
};

Moments moments(const std::vector<double>& values) {
  if (values.empty()) return {};
  if (values.size() < 2) return {mean(values), std::nullopt};
  return {mean(values), standard_deviation(values, /*ddof=*/0)};
}

std::optional<double> value_of(const ResultTable& table, const Json& settings, const std::string& measure,
                               std::vector<std::optional<double>> ResultRow::*values) {
  if (!names_all(table.axes, settings)) return std::nullopt;
  for (size_t m = 0; m < table.measures.size(); ++m)
    if (table.measures[m].key == measure)
      for (const ResultRow& row : table.rows)
        if (same_on(table.axes, row.settings, settings)) return (row.*values)[m];
  return std::nullopt;
}

}  // namespace

std::string scale_name(Scale scale) { return kScales.at(static_cast<size_t>(scale)); }

Scale scale_of(const std::string& name) { return static_cast<Scale>(position_of(name, kScales, "scale")); }

std::string substitute_of(const Figure& figure, const FigureRun& run) {
  return figure.synthetic ? figure.synthetic(run) : "";
}

ResultTable make_table(const Figure& figure, const std::vector<Json>& jobs, const std::vector<Json>& results,
                       bool synthetic) {
  SPARSIGHT_CHECK(jobs.size() == results.size());
  ResultTable table{figure.axes, figure.measures, {}, {}};
  std::vector<std::vector<std::vector<double>>> values;  // [row][measure][trial]
  for (size_t job = 0; job < jobs.size(); ++job) {
    size_t at = 0;
    while (at < table.rows.size() && !same_on(figure.axes, table.rows[at].settings, jobs[job])) ++at;
    if (at == table.rows.size()) {
      ResultRow row;
      row.settings = Json::object();
      for (const std::string& axis : figure.axes) row.settings[axis] = jobs[job].at(axis);
      table.rows.push_back(std::move(row));
      values.emplace_back(figure.measures.size());
    }
    if (const auto seed = number(jobs[job], "seed"))
      if (const auto whole = static_cast<int64_t>(*seed);
          std::find(table.seeds.begin(), table.seeds.end(), whole) == table.seeds.end())
        table.seeds.push_back(whole);
    if (!results[job].is_object()) continue;
    ++table.rows[at].trials;
    for (size_t m = 0; m < figure.measures.size(); ++m)
      if (const auto value = number(results[job], figure.measures[m].key)) values[at][m].push_back(*value);
  }
  for (size_t at = 0; at < table.rows.size(); ++at) {
    ResultRow& row = table.rows[at];
    const auto published = std::find_if(figure.paper.begin(), figure.paper.end(), [&](const Json& paper) {
      return names_all(figure.axes, paper) && same_on(figure.axes, paper, row.settings);
    });
    for (size_t m = 0; m < figure.measures.size(); ++m) {
      const Moments found = moments(values[at][m]);
      row.mean.push_back(found.mean);
      row.deviation.push_back(found.deviation);
      row.measured.push_back(std::ssize(values[at][m]));
      row.paper.push_back(synthetic || published == figure.paper.end() ? std::nullopt
                                                                       : number(*published, figure.measures[m].key));
    }
  }
  return table;
}

std::optional<double> ResultTable::mean(const Json& settings, const std::string& measure) const {
  return value_of(*this, settings, measure, &ResultRow::mean);
}

std::optional<double> ResultTable::deviation(const Json& settings, const std::string& measure) const {
  return value_of(*this, settings, measure, &ResultRow::deviation);
}

std::optional<double> ResultTable::paper(const Json& settings, const std::string& measure) const {
  return value_of(*this, settings, measure, &ResultRow::paper);
}

std::vector<Json> ResultTable::values_of(const std::string& axis) const {
  std::vector<Json> values;
  for (const ResultRow& row : rows)
    if (const Json& value = row.settings.at(axis); std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  return values;
}

std::optional<double> reaches(const std::vector<std::pair<double, double>>& curve, double level) {
  std::vector<std::pair<double, double>> points = curve;
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < points.size(); ++i) {
    if (!(points[i].second >= level)) continue;
    if (i == 0) return points[0].first;
    const auto& [x0, y0] = points[i - 1];
    const auto& [x1, y1] = points[i];
    return x0 + (x1 - x0) * (level - y0) / (y1 - y0);
  }
  return std::nullopt;
}

}  // namespace sparsight
