// The two-layer networks of the patch routing paper as one setting each, and their training from beginning to end:
// Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional
// Neural Networks", section 5.1. Two presets exist, as the paper's text and its released code differ. Letters as in
// patch_sgd.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/papers/pmoe/two_layer/patch_sgd.h"

namespace sparsight::pmoe {

struct TwoLayerSetting {
  std::string form = "joint";
  int64_t experts = 8;
  int64_t filters = 5;  // of each expert
  int64_t patches = 6;
  std::string average = "taken";
  std::string output = "normal";
  double init_std = 0.1;
  double router_std = 1e-4;
  double threshold = 0;
  PatchSgdOptions sgd;
  void declare(OptionSet& set);
};

// 1 / (n² ln(n) sqrt(d)): of the order that the paper prescribes for initial routers (section 4), with a constant of 1.
// Raises UsageError unless there are n >= 2 patches of d >= 1 numbers.
double router_start_std(int64_t patches, int64_t width);

// preset: "paper" or "code". form: "cnn" (equation 5), "separate" (equation 3, c experts of 20 filters, 2 patches) or
// "joint" (equation 4, 8 experts of 5 filters, 6 patches). data: gives n, d and c.
//   paper  40 filters in all; N(0, 1/m) initial filters, routers of standard deviation 1 / (n² ln(n) sqrt(d)); divided
//          by the patches taken; until an epoch has no error, at most 150
//   code   4 filters for the CNN; standard deviations 0.1 (CNN, separate) and 0.01 (joint), routers 0.1 and 1e-4;
//          output weights +-1 by expert for separate training; divided by all patches; 150 epochs; f > 0.5 is class 1
TwoLayerSetting two_layer_preset(const std::string& preset, const std::string& form, const PatchSet& data);

struct TwoLayerSeeds {
  uint64_t filters = 0, routers = 0;  // of initial values and of the order of samples, each
};

// With initial values. Raises UsageError for more patches taken than a sample has.
std::shared_ptr<PatchCnn> make_two_layer(const TwoLayerSetting& setting, const PatchSet& data,
                                         const TwoLayerSeeds& seeds);

struct TwoLayerResult {
  std::shared_ptr<PatchCnn> model;
  std::vector<PatchEpoch> epochs;
  bool zero_error = false;    // in the last epoch
  bool one_signed = false;    // all output weights have one sign: f cannot change its own
  double accuracy = 0;        // on the test samples, at the setting's threshold, 0 to 1
  double other_accuracy = 0;  // at the other preset's threshold (0.5 or 0)
  double test_loss = 0;       // equation 2 or 24
};
TwoLayerResult train_two_layer(const TwoLayerSetting& setting, const PatchSet& train, const PatchSet& test,
                               const TwoLayerSeeds& seeds);

}  // namespace sparsight::pmoe
