// Decoded pixels before conversion to a tensor: rows of interleaved channels, as the image libraries write them.
#pragma once

#include "sparsight/core/bytes.h"

namespace sparsight::engine {

struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  int orientation = 1;  // EXIF: how to turn the stored image upright, 1 to 8
  Bytes values;         // [height, width, channels]
};

// Raises Error for empty images and those of more than `max_pixels`.
void check_image_size(int64_t height, int64_t width, int64_t max_pixels, const std::string& name);

// Each gives 1 or 3 channels.
Pixels decode_jpeg(ByteView bytes, const std::string& name, int64_t max_pixels);
Pixels decode_png(ByteView bytes, const std::string& name, int64_t max_pixels);
Pixels decode_webp(ByteView bytes, const std::string& name, int64_t max_pixels);
Pixels decode_gif(ByteView bytes, const std::string& name, int64_t max_pixels);
Pixels decode_bmp(ByteView bytes, const std::string& name, int64_t max_pixels);
Pixels decode_tiff(ByteView bytes, const std::string& name, int64_t max_pixels);

}  // namespace sparsight::engine
