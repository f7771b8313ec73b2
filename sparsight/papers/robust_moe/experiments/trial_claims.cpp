#include "sparsight/papers/robust_moe/experiments/trial_claims.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/eval/statistics.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::robust_moe {
namespace {

// One trial of one row.
struct TrialValues {
  Json row;
  int64_t seed = 0;
  std::map<std::string, double> value;      // by measure; those that are defined
  std::map<std::string, ImageShare> share;  // of these
};

std::vector<TrialValues> table_trials(const ResultTable& table) {
  std::vector<TrialValues> all;
  for (const ResultRow& row : table.rows)
    for (const Trial& trial : row.trials) {
      TrialValues values{row.settings, trial.seed, {}, {}};
      for (size_t m = 0; m < table.measures.size(); ++m)
        if (trial.values[m]) {
          values.value[table.measures[m].key] = *trial.values[m];
          values.share[table.measures[m].key] = trial.shares[m];
        }
      all.push_back(std::move(values));
    }
  return all;
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
  for (const TrialValues& trial : table_trials(table)) {
    if (!trial.value.contains(measure)) continue;
    Json rest = trial.row;
    rest.erase(x);
    curves[cat(rest.dump(), trial.seed)].emplace(trial.row.at(x).get<double>(), trial);
  }
  for (const auto& [name, curve] : curves)
    for (auto next = curve.begin(), last = next++; next != curve.end(); last = next++)
      compare(last->second, next->second);
}

// One comparison of two numbers.
struct Comparison {
  double beyond = 0;  // by how much one is on the wrong side of the other
  double error = 0;   // standard error of that, over images
  std::string what;
};

std::string errors_text(double deviations) {
  return cat(shown_number(deviations), deviations == 1 ? " standard error" : " standard errors");
}

// The claim holds if no comparison is beyond `deviations` standard errors. It does not hold if the two-sided interval
// of one of n, with 1 - 5 % / n, is beyond 0, so that many comparisons do not make it fail by chance.
Claim claim_about(const std::vector<Comparison>& all, const std::string& text, const std::string& test,
                  double deviations) {
  constexpr double kDoubt = 0.05;
  if (all.empty()) return {text, "not measured", std::nullopt, test};
  const double refuted = normal_quantile(1 - kDoubt / (2 * static_cast<double>(all.size())));
  const auto excess = [](const Comparison& one) { return one.error > 0 ? one.beyond / one.error : 1e9 * one.beyond; };
  const Comparison& worst =
      *std::ranges::max_element(all, [&](const auto& a, const auto& b) { return excess(a) < excess(b); });
  Claim claim{text, cat(worst.what, "; ", all.size(), " comparisons"), std::nullopt, test};
  if (excess(worst) <= deviations + 1e-9)
    claim.holds = true;
  else if (excess(worst) > refuted)
    claim.holds = false;
  return claim;
}

// Two measures of each trial, of which gap(ours, theirs) should not be positive.
template <class Gap>
std::vector<Comparison> compare_measures(const ResultTable& table, const std::string& measure, const std::string& other,
                                         const Gap& gap) {
  std::vector<Comparison> all;
  for (const TrialValues& trial : table_trials(table)) {
    if (!trial.value.contains(measure) || !trial.value.contains(other)) continue;
    const double ours = trial.value.at(measure), theirs = trial.value.at(other);
    all.push_back({gap(ours, theirs), image_deviation(trial.share.at(measure), trial.share.at(other)),
                   cat("at worst ", fixed(ours, 1), " against ", fixed(theirs, 1), " % (", row_text(trial), ")")});
  }
  return all;
}

}  // namespace

Claim never_falls(const ResultTable& table, const std::string& text, const std::string& x, const std::string& measure,
                  double deviations) {
  std::vector<Comparison> all;
  for_neighbours(table, x, measure, [&](const TrialValues& low, const TrialValues& high) {
    const double before = low.value.at(measure), after = high.value.at(measure);
    all.push_back({before - after, image_deviation(low.share.at(measure), high.share.at(measure)),
                   cat("at worst from ", fixed(before, 1), " to ", fixed(after, 1), " % (", row_text(high), ")")});
  });
  return claim_about(all, text, cat("every single trial, falls by at most ", errors_text(deviations), " over images"),
                     deviations);
}

Claim never_below(const ResultTable& table, const std::string& text, const std::string& measure,
                  const std::string& other, double deviations) {
  return claim_about(
      compare_measures(table, measure, other, [](double ours, double theirs) { return theirs - ours; }), text,
      cat("every single trial, at least the other minus ", errors_text(deviations), " over images"), deviations);
}

Claim never_apart(const ResultTable& table, const std::string& text, const std::string& measure,
                  const std::string& other, double deviations) {
  return claim_about(
      compare_measures(table, measure, other, [](double ours, double theirs) { return std::abs(theirs - ours); }), text,
      cat("every single trial, differs by at most ", errors_text(deviations), " over images"), deviations);
}

Claim always_grows(const ResultTable& table, const std::string& text, const std::string& x,
                   const std::string& measure) {
  std::vector<Comparison> all;
  for_neighbours(table, x, measure, [&](const TrialValues& low, const TrialValues& high) {
    const double before = low.value.at(measure), after = high.value.at(measure);
    all.push_back({after > before ? before - after : 1 + before - after, 0,
                   cat("least from ", shown_number(before), " to ", shown_number(after))});
  });
  return claim_about(all, text, "every single trial", 0);
}

}  // namespace sparsight::robust_moe
