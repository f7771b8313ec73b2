// Grids of small glyphs with one planted glyph that determines the label, on paper whose brightness may be correlated
// with the label in training: the synthetic substitute for CelebA in the experiments of Chowdhury et al. 2023
// ("Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", section
// 5.2), where the smile is the relevant patch and hair colour is correlated with it. Needs no files.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct PlantedOptions {
  int64_t classes = 2;
  int64_t side = 64;
  int64_t grid = 4;
  double correlation = 0.5;
  int64_t train = 10000;
  int64_t validation = 1000;
  int64_t test = 2000;
  int64_t seed = 0;
  void declare(OptionSet& set);
};

// Labels cycle, so that the first N images are balanced and larger sets contain smaller ones; image i of a split is a
// pure function of (seed, split, i). Its domain is its paper, dark or bright: in training a fraction `correlation` of
// each even class is dark and of each odd class bright, exactly (to within one image of a class, for any N); in the
// other splits half of each class. The attribute "cell" is the position of the planted glyph, row by row.
DataSplits make_planted(const PlantedOptions& options, const DataContext& context);

}  // namespace sparsight
