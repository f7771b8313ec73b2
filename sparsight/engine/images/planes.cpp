#include "sparsight/engine/images/planes.h"

namespace sparsight::engine {
namespace {

// Weights of Pillow's convert("L"), ITU-R 601-2 in 16 bits.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

}  // namespace

// From `start`, one column of the upright image is `step_x` and one row `step_y` bytes in the stored one (EXIF 2.3, tag
// 0x0112).
void upright_planes(const InterleavedView& pixels, int orientation, int64_t channels, ByteImage& to) {
  const bool swapped = orientation >= 5;
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  to.height = swapped ? pixels.width : pixels.height, to.width = swapped ? pixels.height : pixels.width;
  to.channels = channels;
  int64_t step_y = swapped ? pixels.channels : pixels.row_stride;
  int64_t step_x = swapped ? pixels.row_stride : pixels.channels, start = 0;
  if (flip_y) start += (to.height - 1) * step_y, step_y = -step_y;
  if (flip_x) start += (to.width - 1) * step_x, step_x = -step_x;
  to.bytes.resize(static_cast<size_t>(channels * to.height * to.width));
  uint8_t* out = to.bytes.data();
  const bool to_grey = channels == 1 && pixels.channels == 3;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < to.height; ++y) {
      const uint8_t* from = pixels.bytes + start + y * step_y + (pixels.channels == 1 ? 0 : c);
      if (to_grey)
        for (int64_t x = 0; x < to.width; ++x) *out++ = luma(from + x * step_x);
      else
        for (int64_t x = 0; x < to.width; ++x) *out++ = from[x * step_x];
    }
  }
}

}  // namespace sparsight::engine
