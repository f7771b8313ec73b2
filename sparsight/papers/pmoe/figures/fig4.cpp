// Figure 4: test accuracy of the CNN, separate and joint training against the number of samples.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/digit_runs.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

const std::vector<std::string> kFig4Forms = {"cnn", "separate", "joint"};

struct Fig4Options : DigitOptions {
  std::vector<int64_t> samples;
  int64_t cnn_filters = 40;
  NetworkSize separate{2, 20, 2}, joint{8, 5, 6};
  void declare(OptionSet& set) {
    DigitOptions::declare(set);
    declare_samples(set, &samples);
    declare_router_samples(set, *this);
    set.integer("cnn_filters", &cnn_filters, {1, 100000}, "filters of the CNN");
    set.integer("separate_filters", &separate.filters, {1, 100000}, "filters of each expert, separate training");
    set.integer("separate_patches", &separate.patches, {1, 16}, "patches per expert (l), separate training");
    set.integer("joint_experts", &joint.experts, {1, 1000}, "experts (k), joint training");
    set.integer("joint_filters", &joint.filters, {1, 100000}, "filters of each expert, joint training");
    set.integer("joint_patches", &joint.patches, {1, 16}, "patches per expert (l), joint training");
  }
};

Fig4Options fig4_options(Scale scale, const std::string& preset) {
  Fig4Options options{digit_options(scale, 5), {}};
  options.samples = by_scale<std::vector<int64_t>>(scale, {100}, {100, 300, 1000}, {100, 300, 500, 700, 900, 1000});
  if (preset == "code") options.cnn_filters = 4, options.share = true;
  return options;
}

std::vector<Json> fig4_jobs(const Fig4Options& options, const std::string& preset) {
  std::vector<Json> jobs;
  for (const int64_t samples : options.samples)
    for (const std::string& form : kFig4Forms) {
      const TwoLayerSetting setting =
          form == "cnn" ? cnn_setting(preset, options.cnn_filters, options)
                        : digit_setting(preset, form, form == "joint" ? options.joint : options.separate, options);
      for (const Json& job : digit_jobs({{"model", form}, {"samples", samples}}, setting, options)) jobs.push_back(job);
    }
  return jobs;
}

std::vector<Json> fig4_paper() {
  const std::vector<int64_t> samples = {100, 300, 500, 700, 900, 1000};
  std::vector<Json> rows;
  const auto add = [&](const std::string& form, const PaperCurve& curve) {
    for (size_t i = 0; i < samples.size(); ++i)
      rows.push_back(paper_row({{"model", form}, {"samples", samples[i]}}, "accuracy", curve[i]));
  };
  add("cnn", {{78.7, 2.4}, {89.6, 1.5}, {92.7, 1.1}, {94.0}, {94.5, 1.1}, {95.2, 0.9}});
  add("separate", {{82.4}, {92.3, 0.6}, {94.8}, {95.7}, {96.5}, {96.8}});
  add("joint", {{89.1, 5.1}, {94.3, 0.6}, {94.7}, {95.5, 0.8}, {95.2, 0.8}, {96.6}});
  return rows;
}

// Most trials of both must reach zero training error: means over those that do say nothing about the others.
Claim fewer_epochs(const ResultTable& table, const std::string& form) {
  Claim claim{form + " reaches zero training error in fewer epochs than the CNN", "not measured", {}};
  const std::vector<Json> samples = table.axis_values("samples");
  if (samples.empty()) return claim;
  const Json ours = {{"model", form}, {"samples", samples.back()}},
             cnn = {{"model", "cnn"}, {"samples", samples.back()}};
  const auto reached = table.mean(ours, "zero_error"), cnn_reached = table.mean(cnn, "zero_error");
  if (!reached || !cnn_reached) return claim;
  if (std::min(*reached, *cnn_reached) <= 50) {
    claim.measured = cat("only ", fixed(*reached, 0), " % of its trials and ", fixed(*cnn_reached, 0),
                         " % of the CNN's reach it at ", shown(samples.back()), " samples");
    claim.test = "needs more than half of the trials of each to reach it";
    claim.seeds = std::ssize(table.seeds);
    return claim;
  }
  const auto mean = table.mean(ours, "epochs"), cnn_mean = table.mean(cnn, "epochs");
  MarginTest test{.unit = "epochs"};
  test.measured = cat(fixed(*mean, 0), " against ", fixed(*cnn_mean, 0), " at ", shown(samples.back()), " samples (",
                      fixed(*reached, 0), " and ", fixed(*cnn_reached, 0), " % of the trials reach it)");
  return judge(table, claim.text, {{row_difference(cnn, ours, "epochs")}}, test);
}

std::vector<Claim> fig4_claims(const ResultTable& table, bool until_zero_error) {
  std::vector<Claim> claims;
  for (const char* form : {"separate", "joint"}) {
    claims.push_back(above_everywhere(table, cat(form, " is above the CNN at every number of samples"), {form, "cnn"}));
    claims.push_back(reached_with_share(table, cat(form, " reaches 95 % with at most 60 % of the CNN's samples"),
                                        {form, "cnn"}, 95, 0.6));
    claims.push_back(reached_with_share(
        table, cat(form, " reaches the CNN's accuracy at its largest number of samples with at most 60 % of them"),
        {form, "cnn"}, std::nullopt, 0.6));
    if (until_zero_error) claims.push_back(fewer_epochs(table, form));
  }
  return claims;
}

Figure figure_4(const std::string& preset) {
  Figure figure;
  figure.needs = kDigitNeeds;
  figure.duration = "smoke 2 s, small 20 s, paper 2 min, on 2 cores";
  figure.axes = {"model", "samples"};
  figure.measures = accuracy_measures();
  figure.data = digit_data();
  const auto options = [preset](Scale scale) { return fig4_options(scale, preset); };
  figure.settings = make_settings(options);
  figure.jobs = [options, preset](const FigureRun& run) { return fig4_jobs(chosen(options, run), preset); };
  figure.measure = [](const Json& job, const FigureRun& run) { return accuracy_json(train_digit_job(job, run)); };
  figure.paper = fig4_paper();
  figure.claims = [preset](const ResultTable& table, const FigureRun&) {
    return fig4_claims(table, preset == "paper");
  };
  figure.charts = {
      {.kind = FigureChart::Kind::line, .x = "samples", .y = "accuracy", .series = "model", .levels = {{"95 %", 95}}},
      {.kind = FigureChart::Kind::line, .x = "samples", .y = "epochs", .series = "model"}};
  return figure;
}

}  // namespace

Figure fig4() {
  Figure figure = figure_4("paper");
  figure.name = "pmoe/fig4";
  figure.title = "accuracy against the number of samples, grids of digits";
  figure.notes = {"The batch of 20 and the cap of 150 epochs are those of the paper's code; the text gives neither.",
                  "Every trial has its own samples, routers and filters; the trials of the paper's code share samples "
                  "and routers."};
  return figure;
}

Figure fig4_code() {
  Figure figure = figure_4("code");
  figure.name = "pmoe/fig4-code";
  figure.title = "figure 4 with the constants of the paper's code";
  figure.notes = {
      "Differs from the paper: the constants are those of its code, not of its text.",
      "The CNN has 4 filters here. In one of eight trials its fixed output weights all have the same sign, so its "
      "output cannot change sign.",
      "All trials share samples and routers (share=false: each has its own); an output above 0.5 predicts class 1."};
  return figure;
}

}  // namespace sparsight::pmoe
