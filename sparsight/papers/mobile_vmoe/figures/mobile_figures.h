// The size table and the ablations of the paper (figures 1 and 3a to 3e), and the weight of the guided loss, which it
// only mentions, with small models that train here. experiments/ has the models, their data and what is measured.
#pragma once

#include <optional>
#include <string>

#include "sparsight/papers/mobile_vmoe/experiments/measure_model.h"
#include "sparsight/reproduce/figure.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::mobile_vmoe {

Figure sizes_figure();    // mobile_vmoe/sizes: dense and routed models of each size against operations
Figure experts_figure();  // mobile_vmoe/experts: numbers of experts E
Figure layers_figure();   // mobile_vmoe/layers: numbers of MoE layers L
Figure choices_figure();  // mobile_vmoe/k: experts of an image
Figure routing_figure();  // mobile_vmoe/routing: how experts are chosen
Figure lambda_figure();   // mobile_vmoe/lambda: weights of the guided loss

// Building blocks.

// The names of the two models that a row of a comparison has.
inline constexpr const char *kDenseRow = "dense", *kMoeRow = "Mobile V-MoE";

// A figure without jobs, claims, charts and settings.
Figure mobile_figure(const std::string& name, const std::string& title);

// Declares the settings of a figure and its notes about them. defaults: a function from a scale to options, which are
// MobileOptions or more.
template <class Defaults>
void set_options(Figure& figure, const Defaults& defaults) {
  figure.settings = make_settings(defaults);
  figure.run_notes = [defaults](const FigureRun& run) { return mobile_notes(chosen(defaults, run), run); };
}

// What a job is about: a model, and the one that its `difference` is against.
struct MobileRow {
  MobileModel model;
  std::optional<MobileModel> baseline = {};
};

int64_t job_seed(const Json& job);

// Sets measure and expected_seconds. make_row: a function from a job and the figure's options to a MobileRow.
template <class Defaults, class MakeRow>
void measure_rows(Figure& figure, const Defaults& defaults, const MakeRow& make_row) {
  figure.measure = [defaults, make_row](const Json& job, const FigureRun& run) {
    const auto options = chosen(defaults, run);
    const MobileRow row = make_row(job, options);
    return measure_against(row.model, row.baseline, options, run, job_seed(job));
  };
  figure.expected_seconds = [defaults, make_row](const Json& job, const FigureRun& run) {
    const auto options = chosen(defaults, run);
    return training_seconds(make_row(job, options).model, options, run);
  };
}

// The mean of a measure at one value of an axis minus that at another.
Statistic between(const std::string& axis, const Json& at, const Json& other, const std::string& measure);

// "at 5", "at 12x64": for Margin::where.
std::string at_value(const Json& value);

}  // namespace sparsight::mobile_vmoe
