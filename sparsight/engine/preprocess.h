// From the bytes of an image to the pixels that a program takes: what [transforms] eval does without drawing random
// numbers.
#pragma once

#include <vector>

#include "sparsight/engine/byte_image.h"

namespace sparsight::engine {

struct PreprocessStep {
  enum class Kind { resize, center_crop };
  Kind kind = Kind::resize;
  int64_t height = 0, width = 0;  // of resize: width 0 makes `height` the shorter side, the aspect is kept; of
                                  // center_crop: both are the side, 0 for the image's shorter side
  bool bicubic = false;           // of resize, which is antialiased; else bilinear
};

struct Preprocessing {
  std::vector<PreprocessStep> steps = {};
  bool divides = false;                         // byte / 255, rounded once; else byte * fp32(1 / 255)
  int64_t channels = 0, height = 0, width = 0;  // of the pixels

  // Writes [C,height,width] fp32 in 0..1. An image of another size than the pixels that the steps do not make fit is
  // first resized by its shorter side and cropped to the centre: then returns true. Raises Error for an image that does
  // not fit even so, or of another number of channels.
  bool run(const ByteImageView& image, float* pixels) const;
};

}  // namespace sparsight::engine
