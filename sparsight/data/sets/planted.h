// Grids of small drawn glyphs with one planted glyph that makes the label, on paper that may go along with the label in
// training: the synthetic substitute for CelebA in the experiments of Chowdhury et al. 2023 ("Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", section 5.2), where a smile is
// the patch that tells and the colour of the hair goes along with it. Needs no files.
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

// Labels cycle, so that the first N pictures are balanced and larger sets contain smaller ones; picture i of a part is
// a pure function of (seed, part, i). Its domain is its paper, dark or bright: in training the share `correlation` of
// each even class is dark and of each odd class bright, exactly (to within one picture of a class, whatever N); in the
// other parts half of each class. The attribute "cell" is the place of the planted glyph, row by row.
DataSplits make_planted(const PlantedOptions& options, const DataContext& context);

}  // namespace sparsight
