// Table 2: the cost of training to convergence, in time and operations.
#include <algorithm>
#include <chrono>
#include <numeric>

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/wrn_figure.h"
#include "sparsight/papers/pmoe/figures/wrn_figures.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

constexpr double kConverged = 0.99;  // running training accuracy of an epoch
constexpr const char* kGathered = "WRN-pMoE, gathered";
const std::vector<int64_t> kSamples{4000, 8000, 12000, 16000};

std::vector<WrnSeries> all_series() {
  return {{kWrn, false, 2, WrnData::smiling_glasses},
          {kWrnPmoe, true, 2, WrnData::smiling_glasses},
          {kGathered, true, 2, WrnData::smiling_glasses}};
}

// Measured peak of this machine: operations per second of a large fp32 matrix product.
double peak_flops() {
  const torch::NoGradGuard no_grad;
  const at::Tensor a = torch::ones({1024, 1024}), b = torch::ones({1024, 1024});
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const at::Tensor c = a.mm(b);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2 * 1024.0 * 1024.0 * 1024.0 / seconds);
  }
  return best;
}

Json measure(const Json& settings, const FigureRun& run) {
  const std::vector<WrnSeries> all = all_series();
  const auto series = std::find_if(
      all.begin(), all.end(), [&](const WrnSeries& s) { return s.name == settings.at("model").get<std::string>(); });
  SPARSIGHT_CHECK(series != all.end());
  const WrnResult result = run_wrn_job(settings, *series, run, series->name == kGathered);
  Json measured = {{"seconds", nullptr},
                   {"iterations", nullptr},
                   {"counted_pflop", nullptr},
                   {"timed_pflop", nullptr},
                   {"accuracy", result.accuracy},
                   {"test_images", result.test_images},
                   {"log", epoch_log(result.training)}};
  const auto end = std::find_if(result.training.epochs.begin(), result.training.epochs.end(),
                                [](const TrainedEpoch& epoch) { return epoch.accuracy >= kConverged; });
  if (end == result.training.epochs.end()) return measured;  // no convergence
  const auto epochs = static_cast<double>(end - result.training.epochs.begin() + 1);
  const double images = epochs * settings.at("samples").get<double>();
  measured["seconds"] = end->seconds;
  measured["iterations"] = epochs * static_cast<double>(result.training.steps_per_epoch);
  // The backward pass counts as two forward passes, a multiply-add as two operations.
  const double forward = forward_cost(*series, settings.at("widen"), run.scale, series->name == kGathered);
  measured["counted_pflop"] = images * forward * 3 * 2 / 1e15;
  measured["timed_pflop"] = end->seconds * peak_flops() / 1e15;
  return measured;
}

WrnOptions table2_options(Scale scale) {
  WrnOptions options = wrn_options(scale, kSamples);
  options.repeats.trials = by_scale<int64_t>(scale, 1, 2, 5);  // the paper does not give their number
  return options;
}

Claim ratio(const ResultTable& table, const std::string& measure, const std::string& pmoe, double minimum,
            const std::string& text) {
  return min_ratio(table, text, {.ours = pmoe, .theirs = kWrn, .measure = measure}, minimum);
}

void add_paper(Figure& figure) {
  const std::vector<double> wrn_seconds{260, 324, 468, 630}, pmoe_seconds{156, 192, 280, 368},
      wrn_flops{6, 7.5, 11, 15}, pmoe_flops{3.5, 4.4, 6.4, 8.5};
  for (size_t i = 0; i < kSamples.size(); ++i) {
    figure.paper.push_back(
        {{"model", kWrn}, {"samples", kSamples[i]}, {"seconds", wrn_seconds[i]}, {"timed_pflop", wrn_flops[i]}});
    figure.paper.push_back(
        {{"model", kWrnPmoe}, {"samples", kSamples[i]}, {"seconds", pmoe_seconds[i]}, {"timed_pflop", pmoe_flops[i]}});
  }
}

}  // namespace

Figure table2() {
  Figure figure;
  figure.name = "pmoe/table2";
  figure.title = "training to convergence on four classes of CelebA: time and operations";
  figure.needs = wrn_needs(WrnData::smiling_glasses);
  figure.duration = "smoke under 1 min, small about 30 min, paper weeks, on 2 cores";
  figure.axes = {"model", "samples"};
  figure.measures = {{"seconds", "seconds to convergence"},
                     {"iterations", "steps to convergence", 0},
                     {"counted_pflop", "counted operations (1e15)", 5},
                     {"timed_pflop", "seconds times peak rate (1e15 operations)", 5},
                     {"accuracy", "test accuracy (%)", 1, {"test_images"}}};
  figure.data = wrn_choices(WrnData::smiling_glasses);
  figure.alone = true;
  figure.settings = make_settings(table2_options);
  figure.jobs = [](const FigureRun& run) {
    const WrnOptions options = chosen(table2_options, run);
    std::vector<Json> jobs;
    for (const WrnSeries& series : all_series())
      for (const int64_t samples : options.samples)
        for (const Json& job : wrn_jobs(series.name, samples, options)) jobs.push_back(job);
    return jobs;
  };
  figure.measure = measure;
  figure.expected_seconds = [](const Json& settings, const FigureRun& run) {
    return expected_wrn_seconds(settings, all_series(), run.scale);
  };
  add_paper(figure);
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        ratio(table, "seconds", kWrnPmoe, 1.6, "WRN takes at least 1.6 times as long to converge as WRN-pMoE"),
        ratio(table, "counted_pflop", kWrnPmoe, 1, "WRN needs more counted operations to converge than WRN-pMoE"),
        ratio(table, "counted_pflop", kGathered, 1,
              "WRN also needs more than WRN-pMoE with gathered patches (which the paper's code does not do)")};
  };
  figure.charts = {{FigureChart::Kind::line, "samples", "seconds", "model", ""},
                   {FigureChart::Kind::line, "samples", "counted_pflop", "model", ""}};
  figure.notes = {
      "Convergence: the first epoch whose running training accuracy is at least 99 %; the paper does not state its "
      "criterion.",
      "Counted operations: multiply-adds of the forward pass (convolutions, routers, last layer), times 3 for forward "
      "and backward, times 2 operations per multiply-add.",
      "Differs from the paper: \"seconds times peak rate\" is its formula (seconds x devices x peak x utilisation) "
      "with one device, utilisation 1 and the measured rate of a large fp32 matrix product as the peak. It is "
      "proportional to time.",
      "Times are measured with one job at a time, whatever --jobs says. The paper's are from one RTX 4500."};
  return figure;
}

}  // namespace sparsight::pmoe
