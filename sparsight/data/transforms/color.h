// Random colour: jitter and grey.
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

// Brightness, contrast and saturation by factors drawn from [max(0, 1 - x), 1 + x], hue by a shift from [-x, x], in
// random order.
TransformOp make_color_jitter(const ColorJitterOptions& options);

// Grey with the given probability; the number of channels stays.
TransformOp make_grayscale(const GrayscaleOptions& options);

}  // namespace sparsight
