// Ellipses and squares in red and blue, whose colour goes with the shape in training and not in the test: example 1 of
// Li et al. 2023, "Sparse Mixture-of-Experts are Domain Generalizable Learners". The other factors are those of
// dSprites (Matthey et al. 2017): 6 scales, 40 orientations, 32 x 32 positions. Needs no files.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct ColoredShapesOptions {
  int64_t side = 32;
  double ellipse_red = 0.9, square_blue = 0.5;
  int64_t train = 5000;
  int64_t validation = 500;
  int64_t test = 2000;
  int64_t seed = 0;
  void declare(OptionSet& set);
};

// Classes: ellipse, square. Domains: red, blue. Labels cycle, so that the first N images are balanced and larger sets
// contain smaller ones; image i of a split is a pure function of (seed, split, i), with the same bits on every machine.
// In training and validation a share `ellipse_red` of the ellipses is red and `square_blue` of the squares blue,
// exactly (to within one image of a class, for any N); in the test half of each. Scale, orientation and position are
// uniform and independent of both. Both shapes have the same area, so that only the outline tells them apart.
DataSplits make_colored_shapes(const ColoredShapesOptions& options, const DataContext& context);

// Where a shape is drawn: position in [0, 1] of the range that keeps it inside the image.
struct ShapePose {
  double scale = 1, cosine = 1, sine = 0, x = 0.5, y = 0.5;
};

// The share of each pixel that a square (or an ellipse) covers, [side,side] fp32 in 0..1, from 4 x 4 points in it.
at::Tensor shape_coverage(bool square, const ShapePose& pose, int64_t side);

}  // namespace sparsight
