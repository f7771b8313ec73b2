// Decodes JPEG, PNG, WebP, GIF, BMP and TIFF files. The type is recognised by the first bytes, not by the file's
// extension.
//
// The EXIF orientation is applied. JPEG: baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK (converted as Pillow
// does). PNG: 1 to 16 bits (16 are rounded to 8), grey, RGB, palette, interlaced or not. WebP: one picture, lossy or
// not. GIF: the first picture. BMP: uncompressed. TIFF: the first picture, as libtiff makes RGBA of it. Alpha is
// dropped, not composited, but in TIFF files, whose colours libtiff multiplies with it; colour profiles and gamma are
// ignored. A file that is truncated or damaged so that pixels are missing is an Error.
#pragma once

#include <string>

#include "sparsight/core/bytes.h"
#include "sparsight/engine/byte_image.h"

namespace sparsight::engine {

struct ImageDecoding {
  int channels = 0;  // 1: grey (ITU-R 601 luma of colours), 3: RGB, 0: 1 for grey files, else 3
  int64_t max_pixels = kMaxImagePixels;
};

// `name` appears in errors, which are one line.
ByteImage decode_byte_image(ByteView bytes, const std::string& name, const ImageDecoding& decoding = {});
ByteImage read_byte_image(const std::string& path, const ImageDecoding& decoding = {});

// Raises Error as read_byte_image() does, for what its first and last bytes show: a JPEG or PNG file that begins and
// ends as such is not decoded. All others are.
void check_image_file(const std::string& path);

// The kinds of images that are read, for messages: "JPEG, PNG, ... or TIFF".
const std::string& image_kinds();

// Whether the extension of `path` is one of such files (.jpg, .png, .tif, ...), in upper or lower case.
bool has_image_ending(const std::string& path);

}  // namespace sparsight::engine
