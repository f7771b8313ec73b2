// CIFAR-10 pictures shrunk to a quarter of their area and pasted anywhere onto photographs of something else: the data
// of figure 15 of Chowdhury et al. 2023 ("Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for
// Convolutional Neural Networks", appendix A), who take the photographs from ImageNet's plants.
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

// Images of 32 x 32: a picture of 16 x 16 at one of 17 x 17 places, whose row and column are attributes. Labels cycle
// through the classes and take each class's pictures in order, so that the first N are balanced and larger sets contain
// smaller ones. Where picture i of a part stands, and on what, is a pure function of (seed, part, i). Parts share no
// background. The test split doubles as validation split, as in the paper. Raises Error for missing files, saying
// which.
DataSplits make_cifar_noise(const CifarNoiseOptions& options, const DataContext& context);

}  // namespace sparsight
