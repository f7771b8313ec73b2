#include "sparsight/papers/pmoe/figures/joint_sweep.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/line_fit.h"

namespace sparsight::pmoe {
namespace {

Json joint_cell(const JointOptions& options, int64_t value, int64_t samples) {
  return {{"model", "joint"}, {options.axis, value}, {"samples", samples}};
}

Json cnn_cell(const JointOptions& options) {
  return {{"model", "cnn"}, {options.axis, options.cnn_value()}, {"samples", options.cnn_samples}};
}

TwoLayerSetting joint_setting(const JointOptions& options, int64_t value) {
  NetworkSize size{options.experts, options.filters, options.patches};
  (options.axis == "experts" ? size.experts : size.patches) = value;
  if (options.total_filters > 0) size.filters = filters_of_each(options.total_filters, size.experts);
  return digit_setting("paper", "joint", size, options);
}

std::optional<LineFit> trend(const SeedMeans& mean, const JointOptions& options, int64_t from, int64_t samples) {
  std::vector<std::pair<double, double>> points;
  for (const int64_t value : options.values)
    if (const auto accuracy = mean(joint_cell(options, value, samples), "accuracy"); accuracy && value >= from)
      points.emplace_back(std::pow(static_cast<double>(value), options.power), *accuracy);
  return points.size() < 2 ? std::nullopt : std::optional(fit_line(points));
}

}  // namespace

void JointOptions::declare(OptionSet& set) {
  DigitOptions::declare(set);
  declare_samples(set, &samples);
  if (axis == "experts") {
    set.integers("experts", &values, {1, 1000}, "experts (k)");
    set.integer("patches", &patches, {1, 16}, "patches per expert (l)");
  } else {
    set.integers("patches", &values, {1, 16}, "patches per expert (l)");
    set.integer("experts", &experts, {1, 1000}, "experts (k)");
  }
  set.integer("filters", &filters, {1, 100000}, "filters of each expert");
  set.integer("total_filters", &total_filters, {0, 100000}, "filters of all experts together; 0: `filters` each");
  set.integer("cnn_filters", &cnn_filters, {1, 100000}, "filters of the CNN");
  set.integer("cnn_samples", &cnn_samples, {2, 1000000}, "training samples of the CNN");
}

std::vector<Json> joint_jobs(const JointOptions& options) {
  std::vector<Json> jobs;
  const auto add = [&](const Json& cell, const TwoLayerSetting& setting) {
    for (const Json& job : digit_jobs(cell, setting, options)) jobs.push_back(job);
  };
  for (const int64_t samples : options.samples)
    for (const int64_t value : options.values) add(joint_cell(options, value, samples), joint_setting(options, value));
  add(cnn_cell(options), cnn_setting("paper", options.cnn_filters, options));
  return jobs;
}

std::vector<Json> joint_paper(const JointOptions& paper, const std::vector<PaperCurve>& accuracy, double cnn) {
  std::vector<Json> rows;
  for (size_t i = 0; i < paper.samples.size(); ++i)
    for (size_t j = 0; j < paper.values.size(); ++j)
      rows.push_back(paper_row(joint_cell(paper, paper.values[j], paper.samples[i]), "accuracy", accuracy[i][j]));
  rows.push_back(paper_row(cnn_cell(paper), "accuracy", {cnn}));
  return rows;
}

Claim falls_slowly(const ResultTable& table, const JointOptions& options, int64_t from) {
  const std::string text = cat("from ", from, " ", options.axis, " on, accuracy falls slowly");
  std::vector<Margin> margins;
  std::vector<std::string> fits;
  for (const int64_t samples : options.samples) {
    const auto fit = trend(SeedMeans(table), options, from, samples);
    if (!fit) return {text, "needs at least two measured values", {}};
    fits.push_back(cat(samples, " samples: ", fixed(fit->offset, 1), fit->slope < 0 ? " - " : " + ",
                       fixed(std::abs(fit->slope), 2), " ", options.axis, "^", options.power));
    margins.push_back({[=](const SeedMeans& mean) -> std::optional<double> {
                         const auto line = trend(mean, options, from, samples);
                         return line ? std::optional(-line->slope) : std::nullopt;
                       },
                       cat("at ", samples, " samples")});
  }
  MarginTest test{.decimals = 2};
  test.measured = join(fits, "; ") + "; the least fall";
  return judge(table, text, margins, test);
}

Claim above_the_cnn(const ResultTable& table, const JointOptions& options) {
  const int64_t samples = *std::max_element(options.samples.begin(), options.samples.end());
  const Json ours = joint_cell(options, options.usual(), samples), cnn = cnn_cell(options);
  const std::string text = cat("joint training with ", samples, " samples (", options.usual(), " ", options.axis,
                               ") is above the CNN with ", options.cnn_samples);
  const auto accuracy = table.mean(ours, "accuracy"), other = table.mean(cnn, "accuracy");
  if (!accuracy || !other) return {text, "not measured", {}};
  MarginTest test;
  test.measured = cat(fixed(*accuracy, 1), " % against ", fixed(*other, 1), " %");
  return judge(table, text, {{row_difference(ours, cnn, "accuracy")}}, test);
}

}  // namespace sparsight::pmoe
