// Decodes JPEG and PNG files. The type is recognised by the first bytes, not by the file's extension.
//
// The EXIF orientation is applied. JPEG: baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK (converted as Pillow
// does). PNG: 1 to 16 bits (16 are rounded to 8), grey, RGB, palette, interlaced or not; alpha is dropped, not
// composited; colour profiles and gamma are ignored. A file that is truncated or damaged so that pixels are missing is
// an Error.
#pragma once

#include <string>

#include "sparsight/data/readers/bytes.h"

namespace sparsight {

struct ImageDecoding {
  int channels = 0;  // 1: grey (ITU-R 601 luma of colours), 3: RGB, 0: 1 for grey files, else 3
  int64_t max_pixels = kMaxImagePixels;
};

// uint8 [C,H,W]. `name` appears in errors, which are one line.
at::Tensor decode_image(ByteView bytes, const std::string& name, const ImageDecoding& decoding = {});
at::Tensor read_image(const std::string& path, const ImageDecoding& decoding = {});

// Whether the extension of `path` is .jpg, .jpeg or .png, in upper or lower case.
bool has_image_ending(const std::string& path);

}  // namespace sparsight
