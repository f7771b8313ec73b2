#include <webp/decode.h>

#include "sparsight/core/error.h"
#include "sparsight/engine/images/exif.h"
#include "sparsight/engine/images/pixels.h"

namespace sparsight::engine {
namespace {

constexpr size_t kRiffHeader = 12, kChunkHeader = 8;

// The EXIF orientation in the chunks of the container; 1 without any.
int webp_orientation(ByteView bytes) {
  for (size_t at = kRiffHeader; at + kChunkHeader <= bytes.size();) {
    const ByteView chunk = bytes.subspan(at);
    const size_t size = little_endian(chunk, 4, 4), room = chunk.size() - kChunkHeader;
    if (size > room) return 1;
    if (starts_with(chunk, "EXIF")) {
      const ByteView exif = chunk.subspan(kChunkHeader, size);
      return exif_orientation(starts_with(exif, "Exif") && size > 6 ? exif.subspan(6) : exif);
    }
    at += kChunkHeader + size + size % 2;
  }
  return 1;
}

}  // namespace

Pixels decode_webp(ByteView bytes, const std::string& name, int64_t max_pixels) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) fail(name, " is a damaged WebP file");
  check_image_size(features.height, features.width, max_pixels, name);
  if (features.has_animation) fail(name, " is an animated WebP file; save one of its pictures and read that");
  Pixels pixels{features.height, features.width, 3, webp_orientation(bytes), {}};
  const int row = 3 * features.width;
  pixels.values.resize(static_cast<size_t>(row) * static_cast<size_t>(features.height));
  if (!WebPDecodeRGBInto(bytes.data(), bytes.size(), pixels.values.data(), pixels.values.size(), row))
    fail(name, " is a damaged or cut-off WebP file");
  return pixels;
}

}  // namespace sparsight::engine
