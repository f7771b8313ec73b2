// A BMP file in memory, which needs no image library to write: 24 bits, rows from the bottom.
#pragma once

#include <cstdint>
#include <string>

namespace sparsight::test {

// The colours of its pixels; c: 0 red, 1 green, 2 blue.
inline uint8_t bmp_colour(int64_t x, int64_t y, int64_t c) { return static_cast<uint8_t>(17 * x + 5 * y + 90 * c); }

inline std::string bmp_image(int64_t height, int64_t width) {
  const int64_t row = (3 * width + 3) / 4 * 4, bytes = 54 + row * height;
  std::string file(static_cast<size_t>(bytes), '\0');
  const auto put = [&](size_t at, int64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
  };
  file[0] = 'B', file[1] = 'M';
  put(2, bytes, 4), put(10, 54, 4), put(14, 40, 4), put(18, width, 4), put(22, height, 4), put(26, 1, 2),
      put(28, 24, 2);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < 3; ++c)
        file[static_cast<size_t>(54 + (height - 1 - y) * row + 3 * x + 2 - c)] = static_cast<char>(bmp_colour(x, y, c));
  return file;
}

}  // namespace sparsight::test
