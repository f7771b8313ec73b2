#include "sparsight/papers/pmoe/figures/wrn_figure.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_claims.h"

namespace sparsight::pmoe {
namespace {

const WrnSeries& find_series(const std::vector<WrnSeries>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const WrnSeries& s) { return s.name == name; });
  SPARSIGHT_CHECK(found != all.end());
  return *found;
}

std::vector<Json> make_jobs(const std::vector<WrnSeries>& all, const WrnOptions& options) {
  std::vector<Json> jobs;
  for (const WrnSeries& series : all)
    for (const int64_t samples : options.samples)
      if (!series.only_largest_set || samples == options.samples.back())
        for (const Json& job : wrn_jobs(series.name, samples, options)) jobs.push_back(job);
  return jobs;
}

// Every dataset of the series, each once.
std::vector<DataChoice> data_choices(const std::vector<WrnSeries>& all) {
  std::vector<DataChoice> choices;
  for (const WrnSeries& series : all)
    for (const DataChoice& choice : wrn_choices(series.data))
      if (std::none_of(choices.begin(), choices.end(), [&](const DataChoice& c) { return c.set == choice.set; }))
        choices.push_back(choice);
  return choices;
}

}  // namespace

void WrnOptions::declare(OptionSet& set) {
  repeats.declare(set);
  set.integers("samples", &samples, {4, 1000000}, "numbers of training samples, ascending");
  set.integer("epochs", &epochs, {1, 100000}, "epochs");
  set.integer("batch", &batch, {1, 100000}, "samples per step");
  set.real("lr", &lr, {0, 1000}, "learning rate");
  set.integer("widen", &widen, {1, 100}, "widening factor of the networks; the paper's is 10");
  set.integer("test", &test, {0, 1000000}, "test images; 0: all");
  set.real("momentum", &momentum, {0, 1}, "of the batch norm statistics");
}

WrnOptions wrn_options(Scale scale, const std::vector<int64_t>& paper) {
  if (scale == Scale::paper) return {{5}, paper, 50, 128, 10, 0, 0.1, 0.99, "paper"};
  if (scale == Scale::small) return {{2}, {250, 500, 1000}, 20, 32, 1, 400};
  return {{1}, {16, 32}, 1, 16, 1, 16};
}

std::vector<Json> wrn_jobs(const std::string& series, int64_t samples, const WrnOptions& options) {
  std::vector<Json> jobs;
  for (int64_t trial = 0; trial < options.repeats.trials; ++trial)
    jobs.push_back({{"model", series},
                    {"samples", samples},
                    {"seed", options.repeats.seed(trial)},
                    {"profile", options.profile},
                    {"epochs", options.epochs},
                    {"batch", options.batch},
                    {"lr", options.lr},
                    {"widen", options.widen},
                    {"momentum", options.momentum},
                    {"test_images", options.test}});
  return jobs;
}

WrnResult run_wrn_job(const Json& settings, const WrnSeries& series, const FigureRun& run, bool gathered) {
  const bool faces = of_faces(series.data);
  const int64_t samples = settings.at("samples"), seed = settings.at("seed");
  Json sections;
  sections["run"] = {{"seed", seed}};
  set_data(sections, series.data, {samples, settings.at("test_images")}, run, series.correlation);
  set_model(sections, {series.routed, faces, series.taken, settings.at("widen"), gathered, settings.at("momentum")});
  sections["loader"] = {{"batch", settings.at("batch")}};
  sections["train"] = {{"epochs", settings.at("epochs")}};
  sections["optimizer"] = {{"lr", settings.at("lr")}};
  return train_wrn(sections, run.job_folder);
}

double forward_cost(const WrnSeries& series, int64_t widen, Scale scale, bool gathered) {
  const bool faces = of_faces(series.data);
  const int64_t side = faces ? face_side(scale) : 32;
  Json config = {{"model", {{"name", "wide_resnet"}, {"widen", widen}, {"patch", faces ? side / 16 : 1}}},
                 {"moe", Json::object()},
                 {"losses", Json::object()},
                 {"router", {{"name", "patch_choice"}, {"patches", series.taken}}},
                 {"experts", {{"name", "norm_conv"}, {"channels", 64 * widen}, {"kernel", faces ? 3 : 1}}}};
  config["experts"]["path"] = gathered ? "gathered" : "dense";
  if (series.routed) config["moe"] = {{"blocks", {-1}}, {"experts", faces ? 8 : 4}};
  return static_cast<double>(total(model_cost(config, {3, side, side, faces ? 4 : 10})).multiply_adds);
}

double expected_wrn_seconds(const Json& settings, const std::vector<WrnSeries>& all, Scale scale) {
  constexpr double kRate = 2e10;  // operations per second of one core in this kind of training
  const double images = settings.at("samples").get<double>() * settings.at("epochs").get<double>();
  return images * forward_cost(find_series(all, settings.at("model")), settings.at("widen"), scale) * 6 / kRate;
}

Claim pmoe_above_wrn(const ResultTable& table) {
  return above_everywhere(table, "WRN-pMoE is above WRN at every number of samples", {kWrnPmoe, kWrn});
}

Claim with_fewer_samples(const ResultTable& table, double share) {
  const std::string text = cat("WRN-pMoE reaches WRN's accuracy at the largest number of samples with at most ",
                               fixed(100 * share, 0), " % of them");
  return reached_with_share(table, text, {kWrnPmoe, kWrn}, std::nullopt, share);
}

Claim larger_gap_than(const ResultTable& table, const std::string& wrn, const std::string& pmoe,
                      const std::string& on) {
  return larger_gap(table, "the gap is larger than on " + on, {kWrnPmoe, kWrn}, {pmoe, wrn});
}

Figure wrn_figure(const WrnFigureParts& parts) {
  Figure figure;
  figure.name = parts.name;
  figure.title = parts.title;
  figure.needs = wrn_needs(parts.series[0].data);
  figure.duration = parts.duration;
  figure.axes = {"model", "samples"};
  figure.measures = {{"accuracy", "test accuracy (%)", 1, {"test_images"}}};
  if (parts.worst_cell) figure.measures.push_back({"worst_cell", "test accuracy of the worst cell (%)"});
  figure.data = data_choices(parts.series);
  const auto options = [samples = parts.samples](Scale scale) { return wrn_options(scale, samples); };
  figure.settings = make_settings(options);
  figure.jobs = [options, series = parts.series](const FigureRun& run) {
    return make_jobs(series, chosen(options, run));
  };
  figure.measure = [parts](const Json& settings, const FigureRun& run) {
    const WrnResult result = run_wrn_job(settings, find_series(parts.series, settings.at("model")), run);
    Json measured = {
        {"accuracy", result.accuracy}, {"test_images", result.test_images}, {"log", epoch_log(result.training)}};
    if (parts.worst_cell) measured["worst_cell"] = result.worst_cell;
    return measured;
  };
  figure.expected_seconds = [series = parts.series](const Json& settings, const FigureRun& run) {
    return expected_wrn_seconds(settings, series, run.scale);
  };
  figure.paper = parts.paper;
  figure.claims = [fewer = parts.fewer](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{pmoe_above_wrn(table), with_fewer_samples(table, fewer)};
  };
  figure.charts = {{FigureChart::Kind::line, "samples", "accuracy", "model", ""}};
  if (parts.worst_cell) figure.charts.push_back({FigureChart::Kind::line, "samples", "worst_cell", "model", ""});
  figure.notes = parts.notes;
  figure.notes.push_back(
      "Differs from the paper: scales small and smoke are a reduced profile with widening factor 1, fewer and smaller "
      "images, fewer epochs and smaller batches. Their numbers are not comparable with the paper's.");
  figure.notes.push_back(
      "As in the authors' code: plain SGD with learning rate 0.1, batches of 128, 50 epochs, the dense expert path, "
      "and the accuracy after the last epoch.");
  figure.notes.push_back(
      "Differs from the paper: gates \"softmax_topl\", as in the authors' code: a softmax over all patches, of which "
      "the top l are kept. Equation 4 is a softmax over the l chosen patches only.");
  return figure;
}

}  // namespace sparsight::pmoe
