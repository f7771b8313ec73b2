// Runs of DomainBed's protocol as jobs of a figure: a row for each environment that is left out, and one for the
// average over all. The runs are jobs of their own in the folder "runs" of the figure's, so that rows share them, and
// `sparsight dg table` prints DomainBed's table of them.
#pragma once

#include <string>
#include <vector>

#include "sparsight/dg/dg_run.h"
#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::gmoe {

inline const char* const kAverage = "average";  // in place of an environment

// What all runs of a figure have in common.
struct ProtocolOptions {
  Repeats repeats = {};
  int64_t steps = 5001, eval_every = 300, images = 0, batch = 32;
  std::string precision = "fp32";
  void declare(OptionSet& set);
};

// A small ViT, which is trained from random weights.
struct ProtocolVit {
  int64_t side = 32, width = 64, depth = 6, heads = 4, patch = 8;
  double lr = 0.001;
  void declare(OptionSet& set);
};

DgRun protocol_run(const std::string& set, const std::string& root, const ProtocolOptions& options);
void use_vit(DgRun& run, const ProtocolVit& vit);

// "3 trials of 301 steps, of 16 images from each training environment ...": for Figure::run_notes.
std::vector<std::string> protocol_notes(const ProtocolOptions& options, const FigureRun& run);

// Each of `rows` in every environment and on average, with every seed.
std::vector<Json> environment_jobs(const std::vector<Json>& rows, const std::vector<std::string>& environments,
                                   const Repeats& repeats);

// runs: of the seed of the job, one for each of `environments`. Trains those that the job is about, unless that is
// done. Returns, in percent, the "accuracy" on the environment left out by training-domain validation and the
// "train_accuracy" on the images trained on after the last step; "active_parameters" in thousands and
// "multiply_adds" of an image in millions.
Json measure_environment(const std::vector<DgRun>& runs, const std::vector<std::string>& environments, const Json& job,
                         const FigureRun& run);

// The same, and the "difference" in accuracy to the runs of `baseline`; null where there are none.
Json measure_against(const std::vector<DgRun>& runs, const std::vector<DgRun>& baseline,
                     const std::vector<std::string>& environments, const Json& job, const FigureRun& run);

// Figure::expected_seconds of a job, where each run trains on `environments` less one.
double protocol_seconds(const Json& job, const ProtocolOptions& options, size_t environments, double images_per_second);

}  // namespace sparsight::gmoe
