// The two-layer networks of the patch routing paper, each described by one setting, and their complete training:
// Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional
// Neural Networks", section 5.1. There are two presets, because the paper's text and its released code differ.
// Letters as in patch_sgd.h.
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

// Standard deviation of initial routers, 1 / (n² ln(n) sqrt(d)): the order that the paper prescribes (section 4), with
// constant 1. Raises UsageError unless n >= 2 and d >= 1.
double router_start_std(int64_t patches, int64_t width);

// preset: "paper" or "code". form: "cnn" (equation 5), "separate" (equation 3, c experts of 20 filters, 2 patches) or
// "joint" (equation 4, 8 experts of 5 filters, 6 patches). data: only its n, d and c are used.
//   paper  40 filters in total; initial filters N(0, 1/m), router standard deviation 1 / (n² ln(n) sqrt(d)); the sum is
//          divided by the patches taken; training stops after an epoch without errors, at most 150 epochs
//   code   Differs from the paper: the constants of its released code. 4 filters for the CNN; filter standard deviation
//          0.1 (CNN, separate) or 0.01 (joint), router standard deviation 0.1 or 1e-4; output weights +-1 by expert for
//          separate training; the sum is divided by all patches; 150 epochs; f > 0.5 predicts class 1
TwoLayerSetting two_layer_preset(const std::string& preset, const std::string& form, const PatchSet& data);

struct TwoLayerSeeds {
  uint64_t filters = 0, routers = 0;  // each for initial values and sample order
};

// An initialised network. Raises UsageError if experts take more patches than a sample has.
std::shared_ptr<PatchCnn> make_two_layer(const TwoLayerSetting& setting, const PatchSet& data,
                                         const TwoLayerSeeds& seeds);

struct TwoLayerResult {
  std::shared_ptr<PatchCnn> model;
  std::vector<PatchEpoch> epochs;
  std::vector<double> test_accuracies;  // after each epoch, where asked for
  bool zero_error = false;              // in the last epoch
  bool one_signed = false;              // all output weights have the same sign, so f cannot change sign
  double accuracy = 0;                  // on the test samples, at the setting's threshold, 0 to 1
  double other_accuracy = 0;            // at the other preset's threshold (0.5 or 0)
  double test_loss = 0;                 // equation 2 or 24
};
TwoLayerResult train_two_layer(const TwoLayerSetting& setting, const PatchSet& train, const PatchSet& test,
                               const TwoLayerSeeds& seeds, bool test_epochs = false);

}  // namespace sparsight::pmoe
