#include "sparsight/papers/gmoe/figures/mnist_protocol.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/dg/sweep.h"
#include "sparsight/papers/gmoe/figures/protocol_data.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::gmoe {
namespace {

constexpr int64_t kSubstituteImages = 600;
const DataChoice kMnist{"mnist", "glyphs for MNIST"};

std::vector<DgRun> make_runs(const std::string& set, const Json& job, const ProtocolOptions& options,
                             const FigureRun& run) {
  const std::string root = run.data.empty() ? glyph_mnist(kSubstituteImages, run) : real_folder(kMnist, run);
  DgSweep sweep{.run = protocol_run(set, root, options), .trials = 1, .hparams = 1, .pairs = false};
  sweep.first_trial = job.at("seed");
  return sweep_runs(sweep);
}

}  // namespace

const PublishedResult& published_average(const std::string& set) {
  const auto found = std::ranges::find_if(published_results(), [&](const PublishedResult& result) {
    return result.rule == SelectionRule::training_domains && result.dataset == set &&
           result.algorithm == "ERM (MNIST CNN)";
  });
  SPARSIGHT_CHECK(found != published_results().end());
  return *found;
}

Claim near_published(const ResultTable& table, const std::string& set, double points) {
  const PublishedResult& published = published_average(set);
  const Json average = {{"environment", kAverage}};
  std::string measured;
  if (const auto ours = table.mean(average, "accuracy")) {
    const double difference = *ours - published.mean, inside = points - std::abs(difference);
    measured = cat(fixed(*ours, 1), ", ", signed_fixed(difference, 1), " points: ", fixed(std::abs(inside), 1),
                   inside < 0 ? " beyond" : " within", " the nearer bound");
  }
  return judge(table,
               cat("the average is within ", shown_number(points), " points of the published ",
                   fixed(published.mean, 1), " (", published.source, ")"),
               {{above(average, "accuracy", published.mean - points), "above the lower bound"},
                {below(average, "accuracy", published.mean + points), "below the upper bound"}},
               {.measured = measured});
}

ProtocolOptions mnist_options(Scale scale, const ProtocolOptions& small) {
  ProtocolOptions options = small;
  if (scale == Scale::smoke) options = {.steps = 2, .eval_every = 1, .images = 20, .batch = 4};
  if (scale == Scale::paper) options = {.eval_every = 100, .batch = 64};
  options.repeats.trials = by_scale<int64_t>(scale, 1, small.repeats.trials, 3);
  return options;
}

Figure mnist_figure(const std::string& set, MnistDefaults defaults) {
  const std::vector<std::string> environments = domain_set(set).environment_titles;
  Figure figure;
  figure.needs = "MNIST";
  figure.axes = {"environment"};
  figure.measures = {{"accuracy", "accuracy on the environment left out (%)", 1, {"test_images"}},
                     {"train_accuracy", "on the images trained on (%)"}};
  figure.data = {kMnist};
  figure.settings = make_settings(defaults);
  figure.jobs = [=](const FigureRun& run) {
    return environment_jobs({Json::object()}, environments, chosen(defaults, run).repeats);
  };
  figure.measure = [=](const Json& job, const FigureRun& run) {
    return measure_environment(make_runs(set, job, chosen(defaults, run), run), environments, job, run);
  };
  figure.expected_seconds = [=](const Json& job, const FigureRun& run) {
    constexpr double kImagesPerSecond = 300;
    return protocol_seconds(job, chosen(defaults, run), environments.size(), kImagesPerSecond);
  };
  const PublishedResult& published = published_average(set);
  figure.paper = {paper_row({{"environment", kAverage}}, "accuracy", {published.mean})};
  FigureChart chart;
  chart.kind = FigureChart::Kind::bars;
  chart.x = "environment";
  chart.y = "accuracy";
  figure.charts = {chart};
  figure.notes = {cat("Published: ", published.source, ", ", published.algorithm, ", ", to_text(published.rule),
                      "; 5001 updates of 64 images from each training environment, all 70,000 images, the best of 20 "
                      "samples of hyper-parameters, 3 trials. It gives the average only.")};
  figure.run_notes = [=](const FigureRun& run) { return protocol_notes(chosen(defaults, run), run); };
  return figure;
}

}  // namespace sparsight::gmoe
