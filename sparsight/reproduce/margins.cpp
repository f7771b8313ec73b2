#include "sparsight/reproduce/margins.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight {
namespace {

constexpr double kDoubt = 0.05;

struct JudgedMargin {
  const Margin* margin;
  Estimate found;
  std::optional<Interval> interval;
};

// The margin that decides: the one whose interval reaches lowest.
const JudgedMargin& decisive(const std::vector<JudgedMargin>& all) {
  const auto lowest = [](const JudgedMargin& a) { return a.interval ? a.interval->low : a.found.value.value_or(0); };
  return *std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return lowest(a) < lowest(b); });
}

// "at least 1.2 points (at 900 samples)", or the number that decides and the one that is below it, where it is less
// certain.
std::string measured_text(const std::vector<JudgedMargin>& all, const JudgedMargin& deciding, const MarginTest& test) {
  const JudgedMargin& least = *std::min_element(
      all.begin(), all.end(), [](const auto& a, const auto& b) { return *a.found.value < *b.found.value; });
  const auto shown = [&](const JudgedMargin& margin) { return fixed(*margin.found.value, test.decimals); };
  const std::string& where = deciding.margin->where;
  if (shown(least) == shown(deciding))
    return cat(all.size() > 1 ? "at least " : "", shown(deciding), " ", test.unit,
               where.empty() ? "" : cat(" (", where, ")"));
  return cat(shown(deciding), " ", test.unit, " (", where, "; the least is ", shown(least), ", ", least.margin->where,
             ")");
}

bool is_shown(const JudgedMargin& margin, const MarginTest& test) {
  if (margin.margin->bound == Margin::Bound::upper || !margin.interval) return false;
  return test.ties ? margin.interval->low >= 0 : margin.interval->low > 0;
}

// Equal in every seed, which images cannot show: at 0 or 100 % two models are, whatever they would do elsewhere.
bool is_tied(const JudgedMargin& margin, const MarginTest& test) {
  const std::vector<double>& parts = margin.found.parts;
  return test.ties && margin.found.deviation > 0 && margin.interval &&
         std::all_of(parts.begin(), parts.end(), [](double part) { return std::abs(part) < 1e-9; });
}

bool is_refuted(const JudgedMargin& margin, const MarginTest& test, size_t margins) {
  if (margin.margin->bound == Margin::Bound::lower) return false;
  const auto interval = margin.found.interval(1 - kDoubt / static_cast<double>(margins));
  return interval && (test.ties ? interval->high < 0 : interval->high <= 0);
}

std::string test_text(const MarginTest& test, size_t margins, bool over_images) {
  return cat(
      over_images ? "over shared seeds and test images, 95 % interval" : "over shared seeds, Student's 95 % interval",
      margins > 1 ? " of every difference" : "", test.ties ? " not below 0" : " above 0",
      test.ties && over_images && margins > 1 ? ", of some above, and ties in every seed" : "");
}

// The values of a measure in all trials of the rows.
std::vector<double> all_values(const ResultTable& table, const std::string& measure, const Json& where) {
  std::vector<double> values;
  for (size_t m = 0; m < table.measures.size(); ++m)
    for (const ResultRow& row : table.rows)
      if (table.measures[m].key == measure && contains(row.settings, where))
        for (const Trial& trial : row.trials)
          if (trial.values[m]) values.push_back(*trial.values[m]);
  return values;
}

Claim every_trial(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                  const Json& where, bool from_below) {
  const std::vector<double> found = all_values(table, measure, where);
  const std::string test = cat("every single trial, ", from_below ? "at least " : "at most ", shown_number(bound));
  if (found.empty()) return {text, "not measured", std::nullopt, test};
  const auto [least, most] = std::minmax_element(found.begin(), found.end());
  if (from_below)
    return {text, cat("the minimum of ", found.size(), " is ", shown_number(*least)), *least >= bound, test};
  return {text, cat("the maximum of ", found.size(), " is ", shown_number(*most)), *most <= bound, test};
}

}  // namespace

Statistic row_difference(const Json& row, const Json& other, const std::string& measure) {
  return [=](const SeedMeans& mean) -> std::optional<double> {
    const auto ours = mean(row, measure), theirs = mean(other, measure);
    return ours && theirs ? std::optional(*ours - *theirs) : std::nullopt;
  };
}

Statistic above(const Json& row, const std::string& measure, double bound) {
  return [=](const SeedMeans& mean) -> std::optional<double> {
    const auto value = mean(row, measure);
    return value ? std::optional(*value - bound) : std::nullopt;
  };
}

Statistic below(const Json& row, const std::string& measure, double bound) {
  return [=](const SeedMeans& mean) -> std::optional<double> {
    const auto value = mean(row, measure);
    return value ? std::optional(bound - *value) : std::nullopt;
  };
}

Statistic minus(const Statistic& number, const Statistic& other) {
  return [=](const SeedMeans& mean) -> std::optional<double> {
    const auto ours = number(mean), theirs = other(mean);
    return ours && theirs ? std::optional(*ours - *theirs) : std::nullopt;
  };
}

std::string interval_text(const Estimate& estimate, int decimals) {
  const auto interval = estimate.interval();
  if (!interval) return cat("no interval from ", estimate.seeds, estimate.seeds == 1 ? " seed" : " seeds");
  return cat("95 % interval ", fixed(interval->low, decimals), " to ", fixed(interval->high, decimals));
}

Claim judge(const ResultTable& table, const std::string& text, const std::vector<Margin>& margins,
            const MarginTest& test) {
  Claim claim{text, "not measured", std::nullopt, test_text(test, margins.size(), false), std::nullopt};
  std::vector<JudgedMargin> all;
  std::string missing;
  for (const Margin& margin : margins) {
    const Estimate found = estimate(table, margin.statistic);
    if (found.value)
      all.push_back({&margin, found, found.interval()});
    else if (missing.empty())
      missing = margin.where.empty() ? "not measured" : cat("not measured ", margin.where);
  }
  if (all.empty()) return claim;
  const auto over_images = [](const JudgedMargin& margin) { return margin.found.deviation > 0; };
  claim.test = test_text(test, margins.size(), std::any_of(all.begin(), all.end(), over_images));
  const JudgedMargin& deciding = decisive(all);
  claim.seeds = deciding.found.seeds;
  claim.measured = test.measured;
  if (claim.measured.empty()) claim.measured = measured_text(all, deciding, test);
  claim.measured += cat(", ", interval_text(deciding.found, test.decimals));
  if (!missing.empty()) claim.measured += "; " + missing;
  const auto refuted = [&](const JudgedMargin& margin) { return is_refuted(margin, test, margins.size()); };
  const auto shown = [&](const JudgedMargin& margin) { return is_shown(margin, test); };
  if (std::any_of(all.begin(), all.end(), refuted))
    claim.holds = false;
  else if (missing.empty() && std::any_of(all.begin(), all.end(), shown) &&
           std::all_of(all.begin(), all.end(),
                       [&](const JudgedMargin& margin) { return shown(margin) || is_tied(margin, test); }))
    claim.holds = true;
  return claim;
}

Claim every_trial_at_most(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                          const Json& where) {
  return every_trial(table, text, measure, bound, where, false);
}

Claim every_trial_at_least(const ResultTable& table, const std::string& text, const std::string& measure, double bound,
                           const Json& where) {
  return every_trial(table, text, measure, bound, where, true);
}

Claim every_trial_equal(const ResultTable& table, const std::string& text, const std::string& measure,
                        const std::string& other, const Json& where) {
  constexpr double kRounding = 1e-9;
  Claim claim{text, "not measured", std::nullopt, "in every row, to within rounding"};
  const std::vector<double> ours = all_values(table, measure, where), theirs = all_values(table, other, where);
  if (ours.empty() || ours.size() != theirs.size()) return claim;
  claim.holds = true;
  claim.measured = ours.size() == 1 ? cat("both ", shown_number(ours[0])) : cat("equal in ", ours.size(), " rows");
  for (size_t i = 0; i < ours.size() && *claim.holds; ++i)
    if (std::abs(ours[i] - theirs[i]) > kRounding * std::max(std::abs(ours[i]), std::abs(theirs[i]))) {
      claim.holds = false;
      claim.measured = cat(shown_number(ours[i]), " against ", shown_number(theirs[i]));
    }
  return claim;
}

}  // namespace sparsight
