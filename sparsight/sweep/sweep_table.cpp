#include "sparsight/sweep/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/toml.h"
#include "sparsight/eval/statistics.h"
#include "sparsight/report/charts/series_colours.h"
#include "sparsight/report/format.h"
#include "sparsight/report/page.h"

namespace sparsight {
namespace {

constexpr size_t kMaxShownSettings = 40;  // settings in a chart

using Score = std::optional<double> TrialScore::*;

std::vector<std::optional<double>> scores_of(const SettingScores& setting, Score which) {
  std::vector<std::optional<double>> scores;
  for (const TrialScore& trial : setting.trials) scores.push_back(trial.*which);
  return scores;
}

std::vector<double> values_of(const std::vector<std::optional<double>>& scores) {
  std::vector<double> values;
  for (const auto& score : scores)
    if (score) values.push_back(*score);
  return values;
}

// What settings are compared by.
struct Compared {
  Score score;
  int64_t TrialScore::*images;
  const char* name;    // of the score
  const char* column;  // of the differences
};

Compared compared_by(const std::vector<SettingScores>& scores) {
  if (has_validation(scores))
    return {&TrialScore::validation, &TrialScore::validation_images, "validation", "behind the best"};
  return {&TrialScore::test, &TrialScore::test_images, "test", "against the first"};
}

struct Difference {
  double mean = 0;    // setting - other, 0 to 1
  Interval interval;  // 95 %
};

// Over the seeds that both have; nothing with fewer than two. All trainings see the same images, so that more seeds do
// not make the error of their choice smaller: that of two independent shares, which is more than that of paired ones.
std::optional<Difference> difference(const SettingScores& setting, const SettingScores& other, const Compared& by) {
  std::vector<double> own, others;
  double images = 0;
  for (const TrialScore& a : setting.trials)
    for (const TrialScore& b : other.trials)
      if (a.seed == b.seed && a.*by.score && b.*by.score) {
        own.push_back(*(a.*by.score));
        others.push_back(*(b.*by.score));
        images = static_cast<double>(std::min(a.*by.images, b.*by.images));
      }
  if (own.size() < 2 || images < 1) return {};
  const PairedDifference seeds = paired_difference(own, others);
  const double p = mean(own), q = mean(others), share_error = std::sqrt((p * (1 - p) + q * (1 - q)) / images),
               half = std::hypot(seeds.mean - seeds.interval.low, normal_quantile(0.975) * share_error);
  return Difference{seeds.mean, {seeds.mean - half, seeds.mean + half}};
}

std::string difference_text(const std::optional<Difference>& found) {
  if (!found) return "-";
  return cat(signed_fixed(100 * found->mean, 2), " (", signed_fixed(100 * found->interval.low, 2), " to ",
             signed_fixed(100 * found->interval.high, 2), ")");
}

std::string mean_duration(const SettingScores& setting) {
  double sum = 0;
  for (const TrialScore& trial : setting.trials) sum += trial.seconds;
  return setting.trials.empty() ? "-" : duration(sum / static_cast<double>(setting.trials.size()));
}

Json moments(const std::vector<std::optional<double>>& scores) {
  const std::vector<double> values = values_of(scores);
  if (values.empty()) return Json();
  return {{"mean", mean(values)}, {"deviation", values.size() > 1 ? Json(standard_deviation(values)) : Json()}};
}

Json trials_json(const SettingScores& setting) {
  const auto score = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json list = Json::array();
  for (const TrialScore& trial : setting.trials)
    list.push_back({{"seed", trial.seed},
                    {"validation", score(trial.validation)},
                    {"test", score(trial.test)},
                    {"seconds", trial.seconds},
                    {"run", trial.run}});
  return list;
}

Json number_encoding(const char* field, const std::string& title, bool logarithmic, const char* format) {
  Json scale{{"zero", false}};
  if (logarithmic) scale = Json{{"type", "log"}, {"nice", false}};
  return {
      {"field", field}, {"type", "quantitative"}, {"title", title}, {"scale", scale}, {"axis", {{"format", format}}}};
}

const Json kPointMark = {
    {"type", "point"}, {"filled", true}, {"size", 40}, {"opacity", 0.8}, {"color", series_colour_at(0)}};

Json point_tooltip(const std::string& axis_field = "") {
  Json fields = Json::array({{{"field", "setting"}, {"title", "setting"}}});
  if (!axis_field.empty()) fields.push_back({{"field", axis_field}, {"title", "value"}});
  fields.push_back({{"field", "seed"}, {"title", "seed"}});
  fields.push_back({{"field", "accuracy"}, {"title", "accuracy"}, {"type", "quantitative"}, {"format", ".2%"}});
  return fields;
}

// A row of points per setting, the best on top, with a tick at the mean.
Json strip_chart(const std::vector<SweepAxis>& axes, const std::vector<SettingScores>& scores, const Compared& by) {
  Json points = Json::array(), means = Json::array(), order = Json::array();
  for (const size_t i : ranked(scores)) {
    const std::vector<double> values = values_of(scores_of(scores[i], by.score));
    if (values.empty() || order.size() == kMaxShownSettings) continue;
    const std::string name = point_text(axes, scores[i].point);
    order.push_back(name);
    means.push_back({{"setting", name}, {"accuracy", mean(values)}});
    for (const TrialScore& trial : scores[i].trials)
      if (trial.*by.score)
        points.push_back({{"setting", name}, {"seed", trial.seed}, {"accuracy", *(trial.*by.score)}});
  }
  if (points.empty()) return Json();
  const Json y = {
      {"field", "setting"}, {"type", "nominal"}, {"sort", order}, {"title", nullptr}, {"axis", {{"labelLimit", 320}}}};
  const Json x = number_encoding("accuracy", cat(by.name, " accuracy"), false, ".1%");
  return {
      {"width", "container"},
      {"height", 22 * order.size()},
      {"encoding", {{"x", x}, {"y", y}}},
      {"layer",
       Json::array(
           {{{"data", {{"values", means}}}, {"mark", {{"type", "tick"}, {"thickness", 2}, {"size", 16}}}},
            {{"data", {{"values", points}}}, {"mark", kPointMark}, {"encoding", {{"tooltip", point_tooltip()}}}}})}};
}

// The numbers that a setting's axis has in `scores`; nothing where one is no number, or there are fewer than three.
std::optional<std::vector<double>> axis_numbers(const std::vector<SettingScores>& scores, size_t axis) {
  std::vector<double> numbers;
  for (const SettingScores& setting : scores) {
    const Json value = parse_toml_value(setting.point[axis]);
    if (!value.is_number()) return {};
    numbers.push_back(value);
  }
  std::vector<double> distinct = numbers;
  std::ranges::sort(distinct);
  if (std::ranges::unique(distinct).begin() - distinct.begin() < 3) return {};
  return numbers;
}

Json axis_chart(const std::vector<SweepAxis>& axes, const std::vector<SettingScores>& scores, size_t axis,
                const Compared& by) {
  constexpr double kWide = 8;  // largest over smallest value of a logarithmic axis
  const std::optional<std::vector<double>> numbers = axis_numbers(scores, axis);
  if (!numbers) return Json();
  Json points = Json::array();
  for (size_t i = 0; i < scores.size(); ++i)
    for (const TrialScore& trial : scores[i].trials)
      if (trial.*by.score)
        points.push_back({{"value", (*numbers)[i]},
                          {"setting", point_text(axes, scores[i].point)},
                          {"seed", trial.seed},
                          {"accuracy", *(trial.*by.score)}});
  if (points.empty()) return Json();
  const double low = std::ranges::min(*numbers), high = std::ranges::max(*numbers);
  return {{"width", "container"},
          {"height", 220},
          {"data", {{"values", points}}},
          {"mark", kPointMark},
          {"encoding",
           {{"x", number_encoding("value", axes[axis].key, low > 0 && high / low >= kWide, "~g")},
            {"y", number_encoding("accuracy", cat(by.name, " accuracy"), false, ".1%")},
            {"tooltip", point_tooltip("value")}}}};
}

}  // namespace

std::string mean_text(const std::vector<std::optional<double>>& scores) {
  const std::vector<double> values = values_of(scores);
  if (values.empty()) return "-";
  const std::string text = fixed(100 * mean(values), 2);
  return values.size() == 1 ? text : text + " +- " + fixed(100 * standard_deviation(values), 2);
}

bool has_validation(const std::vector<SettingScores>& scores) {
  return std::ranges::any_of(scores, [](const SettingScores& setting) {
    return std::ranges::any_of(setting.trials, [](const TrialScore& trial) { return trial.validation.has_value(); });
  });
}

std::vector<size_t> ranked(const std::vector<SettingScores>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!has_validation(scores)) return order;
  const auto rank = [&](size_t i) {
    const std::vector<double> values = values_of(scores_of(scores[i], &TrialScore::validation));
    return std::pair{values.size(), values.empty() ? 0 : mean(values)};
  };
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return rank(a) > rank(b); });
  return order;
}

Rows sweep_rows(const std::vector<SweepAxis>& axes, const std::vector<SettingScores>& scores) {
  const Compared by = compared_by(scores);
  Rows rows(1);
  for (const SweepAxis& axis : axes) rows[0].push_back(axis.key);
  for (const char* column : {"seeds", "validation %", by.column, "test %", "time"}) rows[0].emplace_back(column);
  const std::vector<size_t> order = ranked(scores);
  const SettingScores& first = scores[order[0]];
  for (const size_t i : order) {
    std::vector<std::string> row = scores[i].point;
    row.push_back(std::to_string(scores[i].trials.size()));
    row.push_back(mean_text(scores_of(scores[i], &TrialScore::validation)));
    if (i == order[0])
      row.emplace_back(has_validation(scores) ? "best" : "-");
    else
      row.push_back(difference_text(difference(scores[i], first, by)));
    row.push_back(mean_text(scores_of(scores[i], &TrialScore::test)));
    row.push_back(mean_duration(scores[i]));
    rows.push_back(row);
  }
  return rows;
}

Json sweep_json(const std::vector<SweepAxis>& axes, const std::vector<SettingScores>& scores) {
  const Compared by = compared_by(scores);
  Json names = Json::array(), list = Json::array();
  for (const SweepAxis& axis : axes) names.push_back(axis.key);
  const std::vector<size_t> order = ranked(scores);
  for (const size_t i : order) {
    Json settings = Json::object(), shown;
    for (size_t a = 0; a < axes.size(); ++a) settings[axes[a].key] = parse_toml_value(scores[i].point[a]);
    if (const auto found = difference(scores[i], scores[order[0]], by); found && i != order[0])
      shown = {{"mean", found->mean}, {"interval", {found->interval.low, found->interval.high}}};
    list.push_back({{"settings", settings},
                    {"validation", moments(scores_of(scores[i], &TrialScore::validation))},
                    {"test", moments(scores_of(scores[i], &TrialScore::test))},
                    {"difference", shown},
                    {"trials", trials_json(scores[i])}});
  }
  return {{"axes", names}, {"compared_by", by.name}, {"settings", list}};
}

std::vector<Chart> sweep_charts(const std::vector<SweepAxis>& axes, const std::vector<SettingScores>& scores) {
  std::vector<Chart> charts;
  const auto add = [&](const std::string& title, const std::string& note, Json spec) {
    if (!spec.is_null()) charts.push_back({title, note, std::move(spec)});
  };
  const Compared by = compared_by(scores);
  const std::string accuracy = has_validation(scores) ? "Validation accuracy" : "Test accuracy";
  add(accuracy + " by setting",
      cat("A point per seed; the line is their mean.",
          scores.size() > kMaxShownSettings ? cat(" The best ", kMaxShownSettings, " of ", scores.size(), " settings.")
                                            : ""),
      strip_chart(axes, scores, by));
  for (size_t a = 0; a < axes.size(); ++a)
    add(accuracy + " over " + axes[a].key, "A point per training, of all values of the other settings.",
        axis_chart(axes, scores, a, by));
  return charts;
}

std::string sweep_page(const std::string& name, const std::vector<SweepAxis>& axes,
                       const std::vector<SettingScores>& scores, const std::vector<SweepSection>& earlier) {
  Page page;
  page.open_section("settings", "Settings", "", true);
  page.body += html_rows(sweep_rows(axes, scores));
  page.charts(sweep_charts(axes, scores));
  page.close_section();
  for (size_t i = 0; i < earlier.size(); ++i) {
    page.open_section(cat("rung-", i), earlier[i].title, "", false);
    page.body += html_rows(earlier[i].rows);
    page.close_section();
  }
  return html_page({.title = "Sweep " + name, .heading = "Sweep " + name, .subtitle = ""}, page);
}

}  // namespace sparsight
