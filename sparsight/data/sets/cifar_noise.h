// CIFAR-10 images shrunk to a quarter of their area and pasted at random positions onto unrelated photographs: the data
// of figure 15 of Chowdhury et al. 2023 ("Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for
// Convolutional Neural Networks", appendix A), who use ImageNet's plants as photographs.
#pragma once

#include <string>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct CifarNoiseOptions {
  std::string source = "cifar10";
  std::string root;
  std::string backgrounds;
  int64_t background_limit = 5000;
  int64_t train = 0;
  int64_t test = 0;
  int64_t seed = 0;
  void declare(OptionSet& set);
};

// Images of 32 x 32: a 16 x 16 image at one of 17 x 17 positions, whose row and column are attributes. Labels cycle
// through the classes and use each class's images in order, so that the first N are balanced and larger sets contain
// smaller ones. Position and background of image i of a split are a pure function of (seed, split, i). Splits share no
// background. The test split is also the validation split, as in the paper. Raises Error naming missing
// files.
DataSplits make_cifar_noise(const CifarNoiseOptions& options, const DataContext& context);

}  // namespace sparsight
