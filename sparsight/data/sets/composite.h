// Images composed of a grid of small ones: one cell shows the class that determines the label, all others are
// distractors. The data of the patch routing experiments of Chowdhury et al. 2023 ("Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", section 5.1, figure 3): 4 x 4
// MNIST digits, of which one is a 0 or a 1 and fifteen are 2 to 9. Any other dataset can give the cells.
#pragma once

#include <vector>

#include "sparsight/data/sets/composite_cells.h"

namespace sparsight {

struct CompositeOptions : CellOptions {
  int64_t grid = 4;
  std::vector<int64_t> digits = {0, 1};
  bool multi_label = false;
  int64_t train = 10000;
  int64_t validation = 1000;
  int64_t test = 1000;
  int64_t seed = 0;
  void declare(OptionSet& set);
};

// The cells of the options; can be shared by several datasets composed from the same files.
CompositeCells composite_cells(const CompositeOptions& options, const DataContext& context = {});

// Labels cycle through `digits` (through all classes where it is empty), so that the first N images are balanced and
// larger sets contain smaller ones. Image i of a split is a pure function of (seed, split, i) and of the cells; its
// attribute "cell" is the position of the class that determines the label, row by row. Each class is its own
// super-class, for guided routers. With multi_label all cells show classes of `digits`, and the image has the labels of
// all of them; there are no distractors, attributes and super-classes then. Cells of training and validation images
// come from the training split of their dataset, those of test images from its test split. Raises Error for cells
// without an image of one of the `digits`, or without any distractor.
DataSplits make_composite(const CompositeOptions& options, const DataContext& context);
DataSplits compose_cells(const CompositeOptions& options, const CompositeCells& cells);

}  // namespace sparsight
