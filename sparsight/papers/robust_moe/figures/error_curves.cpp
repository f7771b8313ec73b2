// Figures 1 and 4 (left): error against epsilon.
#include <nlohmann/json.hpp>

#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"

namespace sparsight::robust_moe {
namespace {

std::vector<Json> error_jobs(const FigureRun& run, VisionData data) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  std::vector<Json> jobs;
  for (const VisionModel& model : all_models(options))
    for (const double epsilon : options.epsilons) jobs.push_back({{"model", curve_name(model)}, {"epsilon", epsilon}});
  return with_seeds(jobs, options.repeats);
}

const std::vector<Measure>& error_measures() {
  static const std::vector<Measure> measures = {{"robust_error", "error under attack (%)", 1, {"images"}},
                                                {"robust_low", "its Wilson interval from"},
                                                {"robust_high", "to"},
                                                {"success", "success of the attack (%)", 1, {"clean_correct"}},
                                                {"changed", "other prediction (%)", 1, {"images"}},
                                                {"attacked_loss", "cross entropy under attack", 2},
                                                {"gradients", "gradients per image", 0},
                                                {"images", "images", 0}};
  return measures;
}

// The cells of a job with one attack, and the error of another one at the same epsilon.
Json measure_errors(const Json& job, const FigureRun& run, VisionData data, const char* attack, const char* other,
                    const std::string& key) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  const AttackCells cells(options, run);
  const VisionModel model = model_of_curve(job.at("model"), options);
  const double epsilon = job.at("epsilon");
  const auto seed = job.at("seed").get<int64_t>();
  Json measured = cells.measure(model, seed, {.name = attack, .epsilon = epsilon});
  measured.update(layer_summary(measured));
  add_measure(measured, key, cells.measure(model, seed, {.name = other, .epsilon = epsilon}), "robust_error");
  return measured;
}

// Errors under one attack beside those of another one.
struct ErrorCurves {
  const char *name, *title, *attack, *other;
  Measure other_error;
};
Figure error_curves(const ErrorCurves& curves, VisionData data) {
  Figure figure = cell_figure(curves.name, curves.title, data);
  figure.axes = {"model", "epsilon"};
  figure.measures = error_measures();
  figure.measures.insert(figure.measures.begin() + 3, curves.other_error);
  for (const Measure& measure : drop_measures()) figure.measures.push_back(measure);
  figure.jobs = [data](const FigureRun& run) { return error_jobs(run, data); };
  figure.measure = [curves, data](const Json& job, const FigureRun& run) {
    return measure_errors(job, run, data, curves.attack, curves.other, curves.other_error.key);
  };
  figure.charts = {{.x = "epsilon", .y = "robust_error", .series = "model"}};
  figure.notes.push_back("Wilson's 95 % interval is that of one seed's images; the table has the mean of its ends.");
  return figure;
}

}  // namespace

Figure error_figure(VisionData data) {
  Figure figure = error_curves({"robust_moe/f1",
                                "error under PGD against epsilon",
                                kPgd,
                                kPublishedPgd,
                                {"published_error", "error, PGD as published (%)", 1, {"images"}}},
                               data);
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    std::vector<Claim> claims = claims_about_errors(table);
    for (Claim& claim : claims_about_adversarial_training(table)) claims.push_back(std::move(claim));
    claims.push_back(
        never_below(table, "PGD finds at least the errors of PGD as published", "robust_error", "published_error", 1));
    return claims;
  };
  return figure;
}

Figure adaptive_error_figure(VisionData data) {
  Figure figure = error_curves({"robust_moe/f4a",
                                "error under AutoPGD against epsilon",
                                kApgd,
                                kPgd,
                                {"pgd_error", "error, PGD (%)", 1, {"images"}}},
                               data);
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    std::vector<Claim> claims = claims_about_errors(table);
    claims.push_back(never_below(table, "AutoPGD finds at least the errors of PGD", "robust_error", "pgd_error", 1));
    return claims;
  };
  return figure;
}

}  // namespace sparsight::robust_moe
