// From rows of interleaved channels, as image libraries and cameras give them, to planes.
#pragma once

#include "sparsight/engine/byte_image.h"

namespace sparsight::engine {

// Memory of somebody else: rows of `width` pixels of 1 or 3 channels.
struct InterleavedView {
  const uint8_t* bytes = nullptr;
  int64_t height = 0, width = 0, channels = 0;
  int64_t row_stride = 0;  // bytes from one row to the next
};

// Separates the channels and turns the image upright. orientation: that of EXIF, 1 to 8. channels: 1 makes grey (ITU-R
// 601 luma) of colours, 3 repeats grey. `to` allocates only where it grows.
void upright_planes(const InterleavedView& pixels, int orientation, int64_t channels, ByteImage& to);

}  // namespace sparsight::engine
