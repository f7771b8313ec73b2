// Training of the two-layer networks of the patch routing paper on samples of its theoretical distribution, shared by
// the experiments on the theory. Letters as in papers/pmoe/theory/pattern_model.h; m neurons.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sparsight/papers/pmoe/theory/pattern_model.h"
#include "sparsight/papers/pmoe/two_layer/two_layer.h"
#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::pmoe {

// Training ends after the first epoch without a training error, at the latest after `epochs`.
struct PatternTraining {
  double lr = 1;
  int64_t batch = 20, epochs = 150, router_epochs = 100, router_samples = 0;
  double router_lr = 0.2;
  void declare(OptionSet& set);
};
// The training as a field of a job, and back.
inline constexpr const char* kPatternTraining = "training";
Json training_json(PatternTraining training);
PatternTraining to_training(const Json& job);

struct PatternRun {
  std::string form = "separate";  // "cnn", "separate", "joint"
  int64_t experts = 2;
  int64_t filters = 20;  // of each expert
  int64_t patches = 2;   // l
  PatternTraining training = {};
};

// The settings that most of these figures have: repeats and a number of samples.
struct PatternOptions {
  Repeats repeats;
  int64_t samples = 1;
  void declare(OptionSet& set);
};

// Settings with 40 neurons in total.
PatternRun cnn_run();
PatternRun separate_run(int64_t patches);
PatternRun joint_run(int64_t experts, int64_t patches);

// Preset "paper" with the values of `run`: initialisation, averaging and stop rule are the preset's.
TwoLayerSetting pattern_setting(const PatternRun& run, const PatchSet& data);

// `count` samples of a split (`part`), as patches.
PatchSet sample_set(const PatternModel& model, const std::string& part, int64_t count);

// One SGD step on the whole of `batch`; updates the model in place.
void sgd_step(const std::shared_ptr<PatchCnn>& model, const PatchSet& batch, double lr);

// [N]: the paper's f.
at::Tensor signed_outputs(PatchCnn& model, const PatchSet& data);
double mean_loss(PatchCnn& model, const PatchSet& data);  // equation 2

}  // namespace sparsight::pmoe
