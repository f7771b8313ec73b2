// Patches of images as rows of a product, and rows as patches: no copy of all patches is made. Letters: moe/axes.md;
// S patches of an image, P the side of one.
#pragma once

#include <cstdint>

namespace sparsight::cpu {

// [B,C,H,W], H and W multiples of P; strides in floats.
struct StridedImages {
  const float* pixels = nullptr;
  int64_t images = 0, channels = 0, height = 0, width = 0;
  int64_t image_stride = 0, channel_stride = 0, row_stride = 0, column_stride = 0;

  int64_t patches(int64_t side) const { return height / side * (width / side); }  // S
};

// Writes a patch, in the order (channel, row, column), as a row of blocks of columns, `block` floats apart (kernels.h).
void gather_patch(const StridedImages& images, int64_t side, int64_t image, int64_t patch, float* row, int64_t block);

// Writes `row`, [C P P] in that order, to its place in contiguous images of the same sizes.
void scatter_patch(const float* row, const StridedImages& images, int64_t side, int64_t image, int64_t patch,
                   float* pixels);

}  // namespace sparsight::cpu
