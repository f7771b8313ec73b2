// An image as bytes, 0..255: planes of rows. Letters: C channels, H height, W width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sparsight::engine {

// Memory of somebody else. A row is contiguous.
struct ByteImageView {
  const uint8_t* bytes = nullptr;
  int64_t channels = 0, height = 0, width = 0;  // C, H, W
  int64_t plane_stride = 0, row_stride = 0;
};

// [C,H,W], contiguous.
struct ByteImage {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<uint8_t> bytes = {};
  ByteImage(int64_t c, int64_t h, int64_t w)
      : channels(c), height(h), width(w), bytes(static_cast<size_t>(c * h * w)) {}
  ByteImageView view() const { return {bytes.data(), channels, height, width, height * width, width}; }
};

}  // namespace sparsight::engine
