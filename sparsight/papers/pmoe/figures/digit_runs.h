// Shared by the figures on grids of digits (Chowdhury et al. 2023, section 5.1, figures 4 to 9): data, job settings and
// measurements. Letters as in two_layer/patch_sgd.h.
#pragma once

#include <string>

#include "sparsight/data/sets/composite.h"
#include "sparsight/papers/pmoe/two_layer/two_layer.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight::pmoe {

// Grids of 4 x 4 digits of 28 x 28 pixels, exactly one of which is a 0 or 1. The digits are from MNIST if it is below
// run.data, otherwise glyphs; they are read once per process. With the same seed, a smaller set is a prefix of a larger
// one.
struct DigitSets {
  PatchSet train, test;
};
DigitSets digit_sets(const FigureRun& run, int64_t train, int64_t test, uint64_t seed);

// Uses MNIST for the digits of a composite if it is below run.data, otherwise glyphs.
void choose_cells(CompositeOptions& options, const FigureRun& run);

// "glyphs for MNIST" if there is no MNIST below run.data, otherwise "".
std::string digits_substitute(const FigureRun& run);

// An empty set with the shape of digit_sets, for presets.
PatchSet digit_shape();

// Trials, test samples and epochs at a scale: the paper's at scale paper, fewer at smaller scales.
struct DigitScale {
  int64_t trials, test, epochs;
};
DigitScale digit_scale(const FigureRun& run, int64_t trials);

// A job: its cell in the table (including "samples", unless that is in `more`), trial number and all constants of the
// network. With preset "paper" each trial has its own data, routers and filters (the text says "five independent
// experiments"); with "code" trials share data and routers, as in the authors' code.
Json digit_job(const Json& axes, int64_t trial, const std::string& preset, const TwoLayerSetting& setting,
               const FigureRun& run, const Json& more = Json::object());

// Seed of the data and routers, which the trials of a row may share.
uint64_t shared_seed(const Json& job);

struct DigitTrial {
  TwoLayerResult result;
  PatchSet test;
};
// Trains the network of a job.
DigitTrial train_digit_job(const Json& job, const FigureRun& run);

// Measures of most figures: accuracy and accuracy at the other threshold in percent, epochs, zero_error (100 if the
// trial ended without a training error, so the mean is a percentage), test loss.
Json accuracy_of(const DigitTrial& trial);
std::vector<Measure> accuracy_measures();

// The complete setting of a job.
TwoLayerSetting job_setting(const Json& job);

}  // namespace sparsight::pmoe
