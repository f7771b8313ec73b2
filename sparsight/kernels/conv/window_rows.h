// The windows of a convolution as rows of a product: a row has the values under the kernel at one position, in the
// order (row, column, channel). Rows are made where they are multiplied; no matrix of all of them is stored. Maps are
// channels last. Letters: B images, H x W positions of a map, C channels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

// The taps of a window are a row of `taps` positions on an axis of the map; the window of output i begins at
// i * stride + first, which may lie outside of the map, where it reads zeros.
struct WindowAxis {
  int64_t side = 0, taps = 1, stride = 1, first = 0, outputs = 0;
};

struct WindowRows {
  const float* maps = nullptr;  // [B,H,W,C]
  int64_t images = 0, channels = 0;
  WindowAxis down, across;

  int64_t rows_of_image() const { return down.outputs * across.outputs; }
  int64_t rows() const { return images * rows_of_image(); }
  int64_t depth() const { return down.taps * across.taps * channels; }

  // Writes row number `row` in blocks of kBlock columns, `block` floats apart (kBlock: one after the other).
  void write(int64_t row, float* to, int64_t block) const;
};

}  // namespace sparsight::cpu
