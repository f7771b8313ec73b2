// Antialiased resizing of byte images, bit by bit that of Pillow.
#pragma once

#include "sparsight/engine/byte_image.h"

namespace sparsight::engine {

// out: [C,height,width]. As Pillow 3.3 to 12: weights of 22 bits, first along x, then along y, rounded to bytes
// between. (Pillow 13 takes y first where that is faster, which can round a level differently.)
void resize_bytes(const ByteImageView& image, int64_t height, int64_t width, bool bicubic, uint8_t* out);

}  // namespace sparsight::engine
