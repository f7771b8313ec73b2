// Shared by the figures on grids of digits (Chowdhury et al. 2023, section 5.1, figures 4 to 9): data, job settings and
// measurements. Letters as in two_layer/patch_sgd.h.
#pragma once

#include <string>
#include <vector>

#include "sparsight/data/sets/composite.h"
#include "sparsight/papers/pmoe/two_layer/two_layer.h"
#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::pmoe {

// The dataset of these figures.
const std::vector<DataChoice>& digit_data();
inline constexpr const char* kDigitNeeds = "MNIST";

// Grids of 4 x 4 digits of 28 x 28 pixels, exactly one of which is a 0 or 1. The digits are MNIST's, or glyphs in a run
// on synthetic data; they are read once per process. With the same seed, a smaller set is a prefix of a larger one.
struct DigitSets {
  PatchSet train, test;
};
DigitSets digit_sets(const FigureRun& run, int64_t train, int64_t test, uint64_t seed);

// The digits of a composite: MNIST's, or glyphs in a run on synthetic data.
void choose_cells(CompositeOptions& options, const FigureRun& run);

// An empty set with the shape of digit_sets, for presets.
PatchSet digit_shape();

// The settings that all these figures have.
struct DigitOptions {
  Repeats repeats;
  bool share = false;
  int64_t test = 1000;
  PatchSgdOptions sgd;  // all but `stop`, which is the preset's
  bool test_epochs = false;
  void declare(OptionSet& set);
};
// `trials` at scale paper, at most 3 at scale small. Fewer epochs and test samples at scale smoke.
DigitOptions digit_options(Scale scale, int64_t trials);

// "samples": the numbers of training samples of a figure.
void declare_samples(OptionSet& set, std::vector<int64_t>* samples);
// "router_samples", of figures with separate training.
void declare_router_samples(OptionSet& set, DigitOptions& options);

// A network of preset `preset` with other sizes: filters of each expert, whose initial standard deviation follows with
// preset "paper".
struct NetworkSize {
  int64_t experts, filters, patches;
};
TwoLayerSetting digit_setting(const std::string& preset, const std::string& form, const NetworkSize& size,
                              const DigitOptions& options);
TwoLayerSetting cnn_setting(const std::string& preset, int64_t filters, const DigitOptions& options);

// Jobs: a cell of the table (including "samples", unless that is in `more`), for every trial, with all constants of the
// network. Each trial has its own data, routers and filters (the paper's text says "five independent experiments"),
// unless options.share: then all trials have the data and routers of the first, as in the authors' code.
std::vector<Json> digit_jobs(const Json& axes, const TwoLayerSetting& setting, const DigitOptions& options,
                             const Json& more = Json::object());

// Seed of the data and routers, which the trials of a row may share.
uint64_t shared_seed(const Json& job);

struct DigitTrial {
  TwoLayerResult result;
  PatchSet test;
};
// Trains the network of a job.
DigitTrial train_digit_job(const Json& job, const FigureRun& run);

// Measures of most figures: accuracy and accuracy at the other threshold in percent, epochs to the first without a
// training error (null if there was none), zero_error (100 if there was one, so the mean is a percentage), one_signed
// (100 if all output weights have one sign), test loss. More than the measures: "log", a list for each epoch.
Json accuracy_json(const DigitTrial& trial);
std::vector<Measure> accuracy_measures();

// The complete setting of a job.
TwoLayerSetting job_setting(const Json& job);

}  // namespace sparsight::pmoe
