// Crops: from the centre, at random with padding, and at random size and aspect. A size of 0 is the image's shorter
// side; training replaces it by that of the data (fit_to_data.h).
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct CenterCropOptions {
  int64_t size = 32;
  void declare(OptionSet& set);
};

struct RandomCropOptions {
  int64_t size = 32;
  int64_t padding = 0;
  std::string padding_mode = "constant";
  int64_t fill = 0;
  void declare(OptionSet& set);
};

struct RandomResizedCropOptions {
  int64_t size = 32;
  std::vector<double> scale = {0.08, 1.0};
  std::vector<double> ratio = {0.75, 4.0 / 3};
  std::string filter = "bilinear";
  void declare(OptionSet& set);
};

// The size x size square at the centre. Smaller images raise UsageError.
TransformOp make_center_crop(const CenterCropOptions& options);
// A random size x size square after padding each side by `padding` pixels.
TransformOp make_random_crop(const RandomCropOptions& options);
// A random crop of the image with area and aspect ratio sampled from `scale` and `ratio`, resized to size x size
// (Szegedy et al. 2015). Falls back to the largest centre crop of a valid aspect ratio after ten tries.
TransformOp make_random_resized_crop(const RandomResizedCropOptions& options);

}  // namespace sparsight
