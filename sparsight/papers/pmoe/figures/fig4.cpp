// Figure 4: test accuracy of the CNN, separate and joint training against the number of samples.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/papers/pmoe/figures/digit_runs.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

const std::vector<std::string> kFig4Forms = {"cnn", "separate", "joint"};

std::vector<int64_t> fig4_sizes(const FigureRun& run) {
  if (run.scale == Scale::smoke) return {100};
  if (run.scale == Scale::small) return {100, 300, 1000};
  return {100, 300, 500, 700, 900, 1000};
}

std::vector<Json> fig4_jobs(const FigureRun& run, const std::string& preset) {
  std::vector<Json> jobs;
  for (const int64_t samples : fig4_sizes(run))
    for (const std::string& form : kFig4Forms)
      for (int64_t trial = 0; trial < digit_scale(run, 5).trials; ++trial)
        jobs.push_back(digit_job({{"model", form}, {"samples", samples}}, trial, preset,
                                 two_layer_preset(preset, form, digit_shape()), run));
  return jobs;
}

std::vector<Json> fig4_paper() {
  const std::vector<int64_t> samples = {100, 300, 500, 700, 900, 1000};
  const std::vector<std::vector<double>> accuracy = {
      {78.7, 89.6, 92.7, 94.0, 94.5, 95.2}, {82.4, 92.3, 94.8, 95.7, 96.5, 96.8}, {89.1, 94.3, 94.7, 95.5, 95.2, 96.6}};
  std::vector<Json> rows;
  for (size_t form = 0; form < kFig4Forms.size(); ++form)
    for (size_t i = 0; i < samples.size(); ++i)
      rows.push_back({{"model", kFig4Forms[form]}, {"samples", samples[i]}, {"accuracy", accuracy[form][i]}});
  return rows;
}

Claim share_of_samples(const ResultTable& table, const std::string& form, double level) {
  return reached_with_share(table, cat(form, " reaches ", fixed(level, 1), " % with at most 60 % of the CNN's samples"),
                            {form, "cnn"}, level, 0.6);
}

Claim fewer_epochs(const ResultTable& table, const std::string& form) {
  Claim claim{form + " reaches zero training error in fewer epochs than the CNN", "not measured", {}};
  const std::vector<Json> samples = table.values_of("samples");
  if (samples.empty()) return claim;
  const auto ours = table.mean({{"model", form}, {"samples", samples.back()}}, "epochs");
  const auto cnn = table.mean({{"model", "cnn"}, {"samples", samples.back()}}, "epochs");
  if (!ours || !cnn) return claim;
  claim.measured = cat(fixed(*ours, 0), " against ", fixed(*cnn, 0), " at ", samples.back().get<int64_t>(), " samples");
  claim.holds = *ours < *cnn;
  return claim;
}

std::vector<Claim> fig4_claims(const ResultTable& table, bool until_zero_error) {
  std::vector<Claim> claims;
  for (const char* form : {"separate", "joint"}) {
    claims.push_back(above_everywhere(table, cat(form, " is above the CNN at every number of samples"), {form, "cnn"}));
    claims.push_back(share_of_samples(table, form, 95));
    const auto best = table.mean({{"model", "cnn"}, {"samples", 1000}}, "accuracy");
    if (best) claims.push_back(share_of_samples(table, form, *best));
    if (until_zero_error) claims.push_back(fewer_epochs(table, form));
  }
  return claims;
}

Figure figure_4(const std::string& preset) {
  Figure figure;
  figure.needs = "MNIST; falls back to glyphs";
  figure.duration = "smoke 2 s, small 20 s, paper 2 min, on 2 cores";
  figure.axes = {"model", "samples"};
  figure.measures = accuracy_measures();
  figure.synthetic = digits_substitute;
  figure.jobs = [preset](const FigureRun& run) { return fig4_jobs(run, preset); };
  figure.measure = [](const Json& job, const FigureRun& run) { return accuracy_of(train_digit_job(job, run)); };
  figure.paper = fig4_paper();
  figure.claims = [preset](const ResultTable& table, const FigureRun& run) {
    return judged(fig4_claims(table, preset == "paper"), run);
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
      "All trials share samples and routers; an output above 0.5 predicts class 1."};
  return figure;
}

}  // namespace sparsight::pmoe
