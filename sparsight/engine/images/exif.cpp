#include "sparsight/engine/images/exif.h"

#include <string_view>

namespace sparsight::engine {
namespace {

// Numbers of a TIFF block in its own byte order; beyond the end they are 0.
struct TiffBlock {
  ByteView bytes;
  bool big_endian;
  uint32_t number(size_t at, size_t length) const {
    if (at > bytes.size() || bytes.size() - at < length) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < length; ++i) value = value << 8 | bytes[at + (big_endian ? i : length - 1 - i)];
    return value;
  }
};

}  // namespace

// EXIF 2.3, section 4.5: byte order, 42, the offset of the first directory; directories have 12-byte entries of tag,
// type, count and value.
int exif_orientation(ByteView bytes) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3;
  const bool big = starts_with(bytes, "MM");
  if (!big && !starts_with(bytes, "II")) return 1;
  const TiffBlock tiff{bytes, big};
  if (tiff.number(2, 2) != 42) return 1;
  const size_t directory = tiff.number(4, 4);
  const size_t entries = tiff.number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (entry >= bytes.size()) break;
    if (tiff.number(entry, 2) != kOrientation) continue;
    const uint32_t value = tiff.number(entry + 8, 2);
    return tiff.number(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

JpegMarkers scan_jpeg_markers(ByteView jpeg) {
  constexpr uint8_t kApp1 = 0xE1, kApp14 = 0xEE, kStartOfScan = 0xDA;
  constexpr std::string_view kExif("Exif\0\0", 6);
  JpegMarkers markers;
  bool exif_seen = false;
  size_t at = 2;
  while (at + 4 <= jpeg.size() && jpeg[at] == 0xFF) {
    const uint8_t marker = jpeg[at + 1];
    if (marker == 0xFF) {  // fill bytes may precede a marker
      ++at;
      continue;
    }
    const size_t length = static_cast<size_t>(jpeg[at + 2]) << 8 | jpeg[at + 3];
    if (marker == kStartOfScan || length < 2 || length > jpeg.size() - at - 2) break;
    const ByteView body = jpeg.subspan(at + 4, length - 2);
    if (marker == kApp1 && !exif_seen && starts_with(body, kExif)) {
      exif_seen = true;
      markers.orientation = exif_orientation(body.subspan(kExif.size()));
    }
    if (marker == kApp14 && starts_with(body, "Adobe")) markers.adobe = true;
    at += 2 + length;
  }
  return markers;
}

}  // namespace sparsight::engine
