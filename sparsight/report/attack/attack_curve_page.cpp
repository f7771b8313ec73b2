#include "sparsight/report/attack/attack_curve_page.h"

#include <algorithm>

#include "sparsight/core/json_fields.h"
#include "sparsight/report/attack/attack_curve_text.h"
#include "sparsight/report/attack/attack_page.h"
#include "sparsight/report/attack/attack_text.h"
#include "sparsight/report/charts/line_chart.h"
#include "sparsight/report/page.h"

namespace sparsight {
namespace {

constexpr const char* kEpsilonAxis = "epsilon, of pixels in 0..1";
constexpr double kWideRange = 12;  // of the largest to the smallest epsilon

// The smallest and largest epsilon above 0; 0 without any.
std::pair<double, double> epsilon_range(const Json& points) {
  double low = 0, high = 0;
  for (size_t i = 0; points.is_array() && i < points.size(); ++i) {
    const double epsilon = number(points[i], "epsilon").value_or(0);
    if (!(epsilon > 0)) continue;
    low = low == 0 ? epsilon : std::min(low, epsilon);
    high = std::max(high, epsilon);
  }
  return {low, high};
}

// The series called `name`, made where it is missing.
Series& series_called(std::vector<Series>& all, const std::string& name) {
  for (Series& series : all)
    if (series.name == name) return series;
  Series& series = all.emplace_back();
  series.name = name;
  series.measured = true;
  return series;
}

void add_share(Series& series, double epsilon, const Json& share) {
  const std::vector<double> interval = numbers(member(share, "interval"));
  const auto value = number(share, "value");
  if (!value) return;
  series.add(epsilon, value);
  series.intervals.push_back(interval.size() == 2 ? std::pair{interval[0], interval[1]} : std::pair{*value, *value});
}

}  // namespace

std::vector<Chart> attack_curve_charts(const Json& curve) {
  std::vector<Series> robust, changes;
  const Json& points = member(curve, "points");
  for (size_t i = 0; points.is_array() && i < points.size(); ++i) {
    const Json& point = points[i];
    const double epsilon = number(point, "epsilon").value_or(0);
    for (const Json& stage : member(point, "stages")) {
      Series& series = series_called(robust, text(stage, "name"));
      if (i == 0) add_share(series, 0, member(point, "clean_accuracy"));
      add_share(series, epsilon, member(stage, "robust_after"));
    }
    for (const Json& layer : member(point, "routing"))
      series_called(changes, text(layer, "layer")).add(epsilon, number(layer, "change"));
  }
  // Up to the smallest one where they range over more than an order of magnitude.
  const auto [low, high] = epsilon_range(points);
  const double linear_up_to = low > 0 && high / low >= kWideRange ? low : 0;
  std::vector<Chart> charts;
  const auto add = [&](const std::string& title, const std::string& note, Json spec) {
    if (!spec.is_null()) charts.push_back({title, note, std::move(spec)});
  };
  const std::string score = attack_score_name(curve);
  add("Robust " + score,
      "Correct before and after each attack; bars: 95 % Wilson intervals. At 0: clean " + score + ".",
      line_chart(robust, {"robust " + score, ".0%", true, false, kEpsilonAxis, ".4~g", linear_up_to}));
  add("Routing change", "1 - intersection over union of a token's experts, clean against attacked.",
      line_chart(changes, {"change", ".0%", true, false, kEpsilonAxis, ".4~g", linear_up_to}));
  return charts;
}

std::string attack_curve_page(const Json& curve) {
  Page page;
  page.open_section("curve", "Robust " + attack_score_name(curve) + " over epsilon", "", true);
  page.body += html_rows(attack_curve_rows(curve));
  page.charts(attack_curve_charts(curve));
  page.close_section();
  page.open_section("settings", "Settings", "", false);
  page.body += html_list(attack_lines(curve));
  if (const Json& points = member(curve, "points"); points.is_array() && !points.empty())
    page.body += html_list(attack_settings_lines(points[0]));
  page.close_section();
  return framed_attack_page(page, curve, attack_curve_notices(curve));
}

}  // namespace sparsight
