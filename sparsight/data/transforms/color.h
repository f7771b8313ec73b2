// Random colour changes: jitter and grayscale.
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct ColorJitterOptions {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;
  void declare(OptionSet& set);
};

struct GrayscaleOptions {
  double probability = 1;
  void declare(OptionSet& set);
};

// Scales brightness, contrast and saturation by factors sampled from [max(0, 1 - x), 1 + x] and shifts the hue by a
// sample of [-x, x], in random order.
TransformOp make_color_jitter(const ColorJitterOptions& options);

// Grayscale with the given probability; the number of channels is unchanged.
TransformOp make_grayscale(const GrayscaleOptions& options);

}  // namespace sparsight
