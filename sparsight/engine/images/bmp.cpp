// Windows bitmaps, after Microsoft's documentation of BITMAPFILEHEADER and BITMAPINFOHEADER: uncompressed, 1 to 32
// bits.
#include <array>
#include <bit>

#include "sparsight/core/error.h"
#include "sparsight/engine/images/pixels.h"

namespace sparsight::engine {
namespace {

constexpr size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;
constexpr uint32_t kPlain = 0, kBitFields = 3;

struct BmpHeader {
  int64_t width = 0, height = 0;
  bool top_down = false;
  uint32_t bits = 0;
  size_t pixels = 0;                     // position of the first stored row
  size_t colours = 0, colour_bytes = 0;  // palette: position, and 3 or 4 bytes a colour
  size_t colour_count = 0;
  std::array<uint32_t, 3> masks{};  // of red, green and blue in 16 and 32 bits
};

// The 8-bit value of the bits of a pixel that a mask selects.
uint8_t channel(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t largest = mask >> shift;
  return static_cast<uint8_t>(((pixel & mask) >> shift) * uint64_t{255} / largest);
}

BmpHeader read_bmp_header(ByteView bytes, const std::string& name) {
  const auto need = [&](size_t size) {
    if (bytes.size() < size) fail(name, " is a cut-off BMP file");
  };
  need(kFileHeader + 4);
  const size_t size = little_endian(bytes, kFileHeader, 4);
  if (size != kCoreHeader && size < kInfoHeader) fail(name, " is a damaged BMP file (a header of ", size, " bytes)");
  need(kFileHeader + std::min<size_t>(size, kInfoHeader));
  BmpHeader header;
  header.pixels = little_endian(bytes, 10, 4);
  uint32_t compression = kPlain;
  if (size == kCoreHeader) {
    header.width = little_endian(bytes, 18, 2), header.height = little_endian(bytes, 20, 2);
    header.bits = little_endian(bytes, 24, 2);
  } else {
    header.width = static_cast<int32_t>(little_endian(bytes, 18, 4));
    header.height = static_cast<int32_t>(little_endian(bytes, 22, 4));
    header.bits = little_endian(bytes, 28, 2);
    compression = little_endian(bytes, 30, 4);
    header.colour_count = little_endian(bytes, 46, 4);
  }
  header.top_down = header.height < 0;
  if (header.top_down) header.height = -header.height;
  if (compression != kPlain && compression != kBitFields)
    fail(name, " is a compressed BMP file, which is not read; save it uncompressed or as PNG");
  const size_t after = kFileHeader + size;
  if (header.bits == 16) header.masks = {0x7C00, 0x3E0, 0x1F};
  if (header.bits == 32) header.masks = {0xFF0000, 0xFF00, 0xFF};
  if (compression == kBitFields) {  // in the header from version 2 on, after it before
    need(kFileHeader + kInfoHeader + 12);
    for (size_t i = 0; i < 3; ++i) header.masks[i] = little_endian(bytes, kFileHeader + kInfoHeader + 4 * i, 4);
  }
  header.colours = after;
  header.colour_bytes = size == kCoreHeader ? 3 : 4;
  if (header.bits <= 8 && (header.colour_count == 0 || header.colour_count > 256))
    header.colour_count = size_t{1} << header.bits;
  return header;
}

// A colour is stored as blue, green, red.
void put_bgr(uint8_t* rgb, ByteView bytes, size_t at) {
  for (size_t c = 0; c < 3; ++c) rgb[c] = bytes[at + 2 - c];
}

// The number of the colour of a pixel in 1, 4 or 8 bits; the first pixel of a byte has its highest bits.
size_t colour_at(ByteView row, size_t x, uint32_t bits) {
  const size_t bit = x * bits;
  return row[bit / 8] >> (8 - bits - bit % 8) & ((1U << bits) - 1);
}

}  // namespace

Pixels decode_bmp(ByteView bytes, const std::string& name, int64_t max_pixels) {
  const BmpHeader header = read_bmp_header(bytes, name);
  check_image_size(header.height, header.width, max_pixels, name);
  const uint32_t bits = header.bits;
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
    fail(name, " is a damaged BMP file (", bits, " bits a pixel)");
  const auto width = static_cast<size_t>(header.width), height = static_cast<size_t>(header.height);
  const size_t row_bytes = (width * bits + 31) / 32 * 4;
  const bool palette = bits <= 8;
  const size_t colours_end = header.colours + header.colour_count * header.colour_bytes;
  if (header.pixels > bytes.size() || bytes.size() - header.pixels < row_bytes * height ||
      (palette && colours_end > bytes.size()))
    fail(name, " is a cut-off BMP file");

  Pixels pixels{header.height, header.width, 3, 1, {}};
  pixels.values.resize(3 * width * height);
  uint8_t* to = pixels.values.data();
  for (size_t y = 0; y < height; ++y) {
    const size_t stored = header.top_down ? y : height - 1 - y;
    const ByteView row = bytes.subspan(header.pixels + stored * row_bytes, row_bytes);
    for (size_t x = 0; x < width; ++x, to += 3) {
      if (palette) {
        const size_t colour = colour_at(row, x, bits);
        if (colour < header.colour_count) put_bgr(to, bytes, header.colours + colour * header.colour_bytes);
      } else if (bits == 24) {
        put_bgr(to, row, 3 * x);
      } else {
        const uint32_t pixel = little_endian(row, x * bits / 8, bits / 8);
        for (size_t c = 0; c < 3; ++c) to[c] = channel(pixel, header.masks[c]);
      }
    }
  }
  return pixels;
}

}  // namespace sparsight::engine
