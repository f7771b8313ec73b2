#include "sparsight/papers/robust_moe/experiments/trial_claims.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::robust_moe {
namespace {

// One trial of one row.
struct TrialValues {
  Json row;
  int64_t seed = 0;
  std::map<std::string, double> value;  // by measure; those that are defined
};

std::vector<TrialValues> trials_of(const ResultTable& table) {
  std::vector<TrialValues> all;
  for (const ResultRow& row : table.rows)
    for (const Trial& trial : row.trials) {
      TrialValues values{row.settings, trial.seed, {}};
      for (size_t m = 0; m < table.measures.size(); ++m)
        if (trial.values[m]) values.value[table.measures[m].key] = *trial.values[m];
      all.push_back(std::move(values));
    }
  return all;
}

double standard_error_of(double percent, double images) {
  return std::sqrt(std::max(0.0, percent * (100 - percent)) / std::max(1.0, images));
}

std::string row_text(const TrialValues& trial) {
  std::vector<std::string> parts;
  for (const auto& [axis, value] : trial.row.items())
    parts.push_back(cat(axis, " ", value.is_string() ? value.get<std::string>() : shown(value)));
  return cat(join(parts), ", seed ", trial.seed);
}

// Calls compare(smaller x, next x) for neighbours that differ in nothing but the axis.
template <class Compare>
void for_neighbours(const ResultTable& table, const std::string& x, const std::string& measure,
                    const Compare& compare) {
  std::map<std::string, std::map<double, TrialValues>> curves;
  for (const TrialValues& trial : trials_of(table)) {
    if (!trial.value.contains(measure)) continue;
    Json rest = trial.row;
    rest.erase(x);
    curves[cat(rest.dump(), trial.seed)].emplace(trial.row.at(x).get<double>(), trial);
  }
  for (const auto& [name, curve] : curves)
    for (auto next = curve.begin(), last = next++; next != curve.end(); last = next++)
      compare(last->second, next->second);
}

// The worst of many comparisons: how far something is beyond what is allowed; at most 0 where it holds.
struct Worst {
  double excess = -std::numeric_limits<double>::infinity();
  std::string what;
  int64_t comparisons = 0;

  void offer(double by, const std::string& text) {
    ++comparisons;
    if (by <= excess) return;
    excess = by;
    what = text;
  }
  Claim claim(const std::string& text, const std::string& test) const {
    if (comparisons == 0) return {text, "not measured", std::nullopt, test};
    return {text, cat(what, "; ", comparisons, " comparisons"), excess <= 1e-9, test};
  }
};

// Two measures of each trial: gap(ours, theirs) may be some standard errors of the second one.
template <class Gap>
Worst worst_against(const ResultTable& table, const ErrorMeasure& error, const std::string& other, double deviations,
                    const Gap& gap) {
  Worst worst;
  for (const TrialValues& trial : trials_of(table)) {
    if (!trial.value.contains(error.key) || !trial.value.contains(other)) continue;
    const double ours = trial.value.at(error.key), theirs = trial.value.at(other);
    const double allowed = deviations * standard_error_of(theirs, trial.value.at(error.images));
    worst.offer(gap(ours, theirs) - allowed,
                cat("at worst ", fixed(ours, 1), " against ", fixed(theirs, 1), " % (", row_text(trial), ")"));
  }
  return worst;
}

}  // namespace

Claim never_falls(const ResultTable& table, const std::string& text, const std::string& x, const ErrorMeasure& error,
                  double deviations) {
  Worst worst;
  for_neighbours(table, x, error.key, [&](const TrialValues& low, const TrialValues& high) {
    const double before = low.value.at(error.key), after = high.value.at(error.key);
    const double allowed = deviations * standard_error_of(before, low.value.at(error.images));
    worst.offer(before - after - allowed,
                cat("at worst from ", fixed(before, 1), " to ", fixed(after, 1), " % (", row_text(high), ")"));
  });
  return worst.claim(text, cat("every single trial, falls by at most ", shown_number(deviations), " standard errors"));
}

Claim never_below(const ResultTable& table, const std::string& text, const ErrorMeasure& error,
                  const std::string& other, double deviations) {
  return worst_against(table, error, other, deviations, [](double ours, double theirs) { return theirs - ours; })
      .claim(text, cat("every single trial, at least the other minus ", shown_number(deviations),
                       deviations == 1 ? " standard error" : " standard errors"));
}

Claim never_apart(const ResultTable& table, const std::string& text, const ErrorMeasure& error,
                  const std::string& other, double deviations) {
  return worst_against(table, error, other, deviations,
                       [](double ours, double theirs) { return std::abs(theirs - ours); })
      .claim(text, cat("every single trial, differs by at most ", shown_number(deviations), " standard errors"));
}

Claim always_grows(const ResultTable& table, const std::string& text, const std::string& x,
                   const std::string& measure) {
  Worst worst;
  for_neighbours(table, x, measure, [&](const TrialValues& low, const TrialValues& high) {
    const double before = low.value.at(measure), after = high.value.at(measure);
    worst.offer(after > before ? before - after : 1 + before - after,
                cat("least from ", shown_number(before), " to ", shown_number(after)));
  });
  return worst.claim(text, "every single trial");
}

}  // namespace sparsight::robust_moe
