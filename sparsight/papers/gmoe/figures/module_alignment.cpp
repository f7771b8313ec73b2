#include <nlohmann/json.hpp>

#include "sparsight/papers/gmoe/figures/theory_figures.h"
#include "sparsight/papers/gmoe/theory/alignment.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::gmoe {
namespace {

struct AlignmentOptions {
  int64_t branches = 8, experts = 16;
  double gate = 1;
  std::vector<double> powers = {1, 2};
  void declare(OptionSet& set) {
    set.integer("branches", &branches, {1, 16}, "branches of the program (M), each of complexity 1");
    set.integer("experts", &experts, {2, 1000}, "largest number of experts (N)");
    set.real("gate", &gate, {0, 1e6}, "complexity of the condition");
    set.floats("powers", &powers, {1, 10}, "an expert with n branches needs n to this power");
  }
};

AlignmentOptions alignment_options(Scale) { return {}; }

std::vector<Json> alignment_jobs(const FigureRun& run) {
  const AlignmentOptions options = chosen(alignment_options, run);
  std::vector<Json> jobs;
  for (const double power : options.powers)
    for (int64_t experts = 1; experts <= options.experts; ++experts)
      jobs.push_back({{"power", power}, {"experts", experts}});
  return jobs;
}

Json measure_alignment(const Json& job, const FigureRun& run) {
  const AlignmentOptions options = chosen(alignment_options, run);
  const ProgramCosts costs{std::vector<double>(static_cast<size_t>(options.branches), 1.0), options.gate,
                           job.at("power")};
  const auto experts = job.at("experts").get<int64_t>();
  const double here = moe_alignment(costs, experts);
  const double step = experts > 1 ? here - moe_alignment(costs, experts - 1) : 0;
  const bool rising = experts > options.branches;
  return {{"alignment", here},
          {"above", here - moe_alignment(costs, options.branches)},
          {"before", experts > 1 && !rising ? Json(step) : Json()},
          {"after", rising ? Json(step) : Json()}};
}

std::vector<Claim> alignment_claims(const ResultTable& table, const FigureRun&) {
  return {every_trial_at_least(table, "no number of experts aligns better than that of the branches", "above", 0),
          every_trial_at_most(table, "up to there, every further expert improves the alignment (remark 3)", "before",
                              -1e-9),
          every_trial_at_least(table, "beyond it, every further expert makes it worse", "after", 1e-9)};
}

}  // namespace

Figure module_alignment_figure() {
  Figure figure;
  figure.name = "gmoe/t3";
  figure.title = "theorem 2 and remark 3: the alignment of N experts with a program of 8 branches";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"power", "experts"};
  figure.measures = {{"alignment", "alignment (lower is better)", 1},
                     {"above", "above that of as many experts as branches", 1},
                     {"before", "change by the last expert, up to the number of branches", 1},
                     {"after", "change by the last expert, beyond it", 1}};
  figure.settings = make_settings(alignment_options);
  figure.jobs = alignment_jobs;
  figure.measure = measure_alignment;
  figure.claims = alignment_claims;
  FigureChart chart;
  chart.x = "experts";
  chart.y = "alignment";
  chart.series = "power";
  figure.charts = {chart};
  figure.notes = {
      "Equal branches of complexity 1 and a condition of complexity 1; an expert that has n branches needs n^power. "
      "Below 8 experts the branches are grouped as well as possible (exactly, over all groupings).",
      "Remark 3 says that the alignment first falls and then rises in N. Its minimum is at N = M, but it is no smooth "
      "fall: from 4 to 7 experts some expert still has two branches, while each expert adds a module."};
  return figure;
}

}  // namespace sparsight::gmoe
