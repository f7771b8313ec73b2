// What the figures on grids of digits share (Chowdhury et al. 2023, section 5.1, figures 4 to 9): the data, the jobs'
// settings and their measurement. Letters as in two_layer/patch_sgd.h.
#pragma once

#include <string>

#include "sparsight/data/sets/composite.h"
#include "sparsight/papers/pmoe/two_layer/two_layer.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

// 4 x 4 cells of 28 x 28 pixels with one 0 or 1: of MNIST below run.data, of glyphs without it. The same cells are read
// once for all sets of a process. A smaller set is the beginning of a larger one of the same seed.
struct DigitSets {
  PatchSet train, test;
};
DigitSets digit_sets(const FigureRun& run, int64_t train, int64_t test, uint64_t seed);

// Takes the digits of a composite from MNIST below run.data, from glyphs where there is none.
void choose_cells(CompositeOptions& options, const FigureRun& run);

// "glyphs for MNIST" where there is no MNIST below run.data, else "".
std::string digits_substitute(const FigureRun& run);

// A set of the shape of digit_sets without samples, for presets.
PatchSet digit_shape();

// How many trials, test samples and epochs a scale takes: those of the paper, fewer at smaller scales.
struct DigitScale {
  int64_t trials, test, epochs;
};
DigitScale digit_scale(const FigureRun& run, int64_t trials);

// A job: its place in the table ("samples" among it, or in `more`), trial number and all constants of the network. With
// preset "paper" each trial draws its own data, routers and filters; with "code" trials share data and routers.
Json digit_job(const Json& place, int64_t trial, const std::string& preset, const TwoLayerSetting& setting,
               const FigureRun& run, const Json& more = Json::object());

// Of what the trials of a job's row share, if they do: data and routers.
uint64_t shared_seed(const Json& job);

struct DigitTrial {
  TwoLayerResult result;
  PatchSet test;
};
// Trains what a job says.
DigitTrial train_digit_job(const Json& job, const FigureRun& run);

// What most figures show of a trial: accuracy and accuracy at the other threshold in percent, epochs, zero_error (share
// of trials in percent), test loss.
Json accuracy_of(const DigitTrial& trial);
std::vector<Measure> accuracy_measures();

// The setting of a job, with every constant.
TwoLayerSetting job_setting(const Json& job);

}  // namespace sparsight::pmoe
