#include "sparsight/reproduce/results.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/eval/statistics.h"

namespace sparsight {
namespace {

const std::vector<std::string> kScales = {"smoke", "small", "paper"};

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

// The row of a job, added if it is the first of its axes.
ResultRow& find_row(ResultTable& table, const Json& job) {
  for (ResultRow& row : table.rows)
    if (same_on(table.axes, row.settings, job)) return row;
  ResultRow row;
  row.settings = Json::object();
  for (const std::string& axis : table.axes) row.settings[axis] = job.at(axis);
  table.rows.push_back(std::move(row));
  return table.rows.back();
}

// Means and deviations of a row from its trials.
void summarise(ResultRow& row, size_t measures) {
  for (size_t m = 0; m < measures; ++m) {
    std::vector<double> values;
    for (const Trial& trial : row.trials)
      if (trial.values[m]) values.push_back(*trial.values[m]);
    const Moments found = moments(values);
    row.mean.push_back(found.mean);
    row.deviation.push_back(found.deviation);
    row.measured.push_back(std::ssize(values));
  }
}

std::optional<double> find_value(const ResultTable& table, const Json& settings, const std::string& measure,
                                 std::vector<std::optional<double>> ResultRow::*values) {
  if (!names_all(table.axes, settings)) return std::nullopt;
  for (size_t m = 0; m < table.measures.size(); ++m)
    if (table.measures[m].key == measure)
      for (const ResultRow& row : table.rows)
        if (same_on(table.axes, row.settings, settings)) return (row.*values)[m];
  return std::nullopt;
}

// The images of a measure in one trial.
ImageShare image_share(const Measure& measure, double percent, const Json& job, const Json& result) {
  if (measure.images.count.empty()) return {};
  const std::string& count = measure.images.count;
  const auto images = number(result.contains(count) ? result : job, count);
  ImageShare share{percent, images.value_or(0), measure.images.own && !job.contains("shared_seed"), {}};
  const Json outcomes = member(result, "outcomes");
  if (outcomes.is_object() && outcomes.contains(measure.key))
    share.outcomes = to_outcomes(outcomes.at(measure.key).get<std::string>());
  return share;
}

}  // namespace

std::string scale_name(Scale scale) { return kScales.at(static_cast<size_t>(scale)); }

Scale find_scale(const std::string& name) { return static_cast<Scale>(find_position(name, kScales, "scale")); }

bool same_on(const std::vector<std::string>& axes, const Json& a, const Json& b) {
  return std::all_of(axes.begin(), axes.end(),
                     [&](const std::string& axis) { return member(a, axis) == member(b, axis); });
}

ResultTable make_table(const Figure& figure, const std::vector<Json>& jobs, const std::vector<Json>& results,
                       bool compared) {
  SPARSIGHT_CHECK(jobs.size() == results.size());
  ResultTable table{figure.axes, figure.measures, {}, {}};
  for (size_t job = 0; job < jobs.size(); ++job) {
    ResultRow& row = find_row(table, jobs[job]);
    const auto seed = number(jobs[job], "seed");
    if (seed && std::find(table.seeds.begin(), table.seeds.end(), *seed) == table.seeds.end())
      table.seeds.push_back(static_cast<int64_t>(*seed));
    if (!results[job].is_object()) continue;
    Trial trial{.seed = static_cast<int64_t>(seed.value_or(0)), .values = {}};
    for (const Measure& measure : figure.measures) {
      trial.values.push_back(number(results[job], measure.key));
      trial.shares.push_back(image_share(measure, trial.values.back().value_or(0), jobs[job], results[job]));
    }
    row.trials.push_back(trial);
  }
  for (ResultRow& row : table.rows) {
    summarise(row, figure.measures.size());
    const auto published = std::find_if(figure.paper.begin(), figure.paper.end(), [&](const Json& paper) {
      return names_all(figure.axes, paper) && same_on(figure.axes, paper, row.settings);
    });
    for (const Measure& measure : figure.measures) {
      const bool known = compared && published != figure.paper.end();
      row.paper.push_back(known ? number(*published, measure.key) : std::nullopt);
      row.paper_deviation.push_back(known ? number(*published, measure.key + "_deviation") : std::nullopt);
    }
  }
  return table;
}

std::optional<double> ResultTable::mean(const Json& settings, const std::string& measure) const {
  return find_value(*this, settings, measure, &ResultRow::mean);
}

std::optional<double> ResultTable::deviation(const Json& settings, const std::string& measure) const {
  return find_value(*this, settings, measure, &ResultRow::deviation);
}

std::optional<double> ResultTable::paper(const Json& settings, const std::string& measure) const {
  return find_value(*this, settings, measure, &ResultRow::paper);
}

std::vector<Json> ResultTable::axis_values(const std::string& axis) const {
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
