#include <turbojpeg.h>

#include <memory>
#include <string>

#include "sparsight/core/error.h"
#include "sparsight/engine/images/exif.h"
#include "sparsight/engine/images/pixels.h"

namespace sparsight::engine {
namespace {

// Values are inverted (255 is no ink) in files with Adobe's marker. `values` is CMYK, the result RGB.
Bytes rgb_from_cmyk(const Bytes& values, bool inverted) {
  Bytes rgb(values.size() / 4 * 3);
  for (size_t i = 0; i < values.size() / 4; ++i) {
    const int flip = inverted ? 0 : 255;
    const int light = values[4 * i + 3] ^ flip;
    for (size_t c = 0; c < 3; ++c)
      rgb[3 * i + c] = static_cast<uint8_t>(((values[4 * i + c] ^ flip) * light + 127) / 255);
  }
  return rgb;
}

// The library reports damage as a warning and continues. Warnings that affect no pixels are common in old datasets and
// ignored; the others mean that a part of the image is missing.
bool is_harmless(const std::string& warning) {
  for (const char* part : {"extraneous bytes", "Invalid SOS parameters", "Inconsistent progression", "Unknown Adobe",
                           "Unknown APP", "thumbnail", "revision number"})
    if (warning.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

Pixels decode_jpeg(ByteView bytes, const std::string& name, int64_t max_pixels) {
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitDecompress(), tjDestroy);
  if (!handle) fail(name, ": not enough memory to decode");
  int width = 0, height = 0, subsampling = 0, space = 0;
  const auto* data = bytes.data();
  const auto size = static_cast<unsigned long>(bytes.size());
  // The result is not reliable: failure for unusual subsampling, which can be decoded, and success for tables alone.
  tjDecompressHeader3(handle.get(), data, size, &width, &height, &subsampling, &space);
  if (width < 1 || height < 1) fail(name, " is a damaged JPEG file (", printable(tjGetErrorStr2(handle.get())), ")");
  check_image_size(height, width, max_pixels, name);
  const JpegMarkers markers = scan_jpeg_markers(bytes);
  const bool grey = space == TJCS_GRAY, cmyk = space == TJCS_CMYK || space == TJCS_YCCK;
  const int format = grey ? TJPF_GRAY : cmyk ? TJPF_CMYK : TJPF_RGB;
  Pixels pixels{height, width, tjPixelSize[format], markers.orientation, {}};
  pixels.values.resize(static_cast<size_t>(pixels.height * pixels.width * pixels.channels));
  // LIMITSCANS: a progressive file of thousands of scans would keep the decoder busy for minutes.
  if (tjDecompress2(handle.get(), data, size, pixels.values.data(), width, 0, height, format, TJFLAG_LIMITSCANS) != 0) {
    const std::string reason = tjGetErrorStr2(handle.get());
    if (tjGetErrorCode(handle.get()) == TJERR_FATAL || !is_harmless(reason))
      fail(name, " is a damaged or cut-off JPEG file (", printable(reason), ")");
  }
  if (cmyk) {
    pixels.values = rgb_from_cmyk(pixels.values, markers.adobe);
    pixels.channels = 3;
  }
  return pixels;
}

}  // namespace sparsight::engine
