// Images composed of a grid of small ones: one cell shows the digit that determines the label, all others are
// distractors. The data of the patch routing experiments of Chowdhury et al. 2023 ("Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", section 5.1, figure 3): 4 x 4
// MNIST digits, of which one is a 0 or a 1 and fifteen are 2 to 9.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/core/random.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct CompositeOptions {
  std::string cells = "mnist";
  std::string root;
  int64_t grid = 4;
  std::vector<int64_t> digits = {0, 1};
  int64_t train = 10000;
  int64_t validation = 1000;
  int64_t test = 1000;
  int64_t seed = 0;
  void declare(OptionSet& set);
};

// An image of a digit, [C,H,W] uint8, sampled from those of a split.
using CellSampler = std::function<at::Tensor(int64_t digit, RandomStream& random)>;

struct CompositeCells {
  CellSampler train, test;
};

// The cells of options.cells; can be shared by several datasets composed from the same files.
CompositeCells composite_cells(const CompositeOptions& options);

// Labels cycle through `digits`, so that the first N images are balanced and larger sets contain smaller ones. Image i
// of a split is a pure function of (seed, split, i) and of the cells; its attribute "cell" is the position of the digit
// that determines the label, row by row. Each class is its own super-class, for guided routers. Cells of the test split
// come from the test split of their dataset. Raises Error for cells without one of the digits, or without any
// distractor.
DataSplits make_composite(const CompositeOptions& options, const DataContext& context);
DataSplits composite_of(const CompositeOptions& options, const CompositeCells& cells);

}  // namespace sparsight
