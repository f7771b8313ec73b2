// Shear, shift and rotation of byte images.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// The source of an output pixel, as offsets from the image's centre: source = (a x + b y + c, d x + e y + f).
using WarpMatrix = std::array<double, 6>;

// What pixels from outside of the image become: a level for each channel, or one for all.
using BorderFill = std::vector<uint8_t>;

inline uint8_t channel_fill(const BorderFill& fill, int64_t channel) {
  return fill.size() == 1 ? fill[0] : fill[static_cast<size_t>(channel)];
}
// Raises UsageError unless there are 1 or `channels` levels.
void check_fill(const BorderFill& fill, int64_t channels);

// image: [C,H,W] uint8 -> the same shape; each pixel is the nearest source pixel, or `fill` outside of the image.
at::Tensor warp(const at::Tensor& image, const WarpMatrix& matrix, const BorderFill& fill);

// [C,H,W] uint8 turned counter-clockwise about its centre, with bilinear interpolation and 0 outside of the image: the
// bytes of Pillow's Image.rotate(degrees, BILINEAR).
at::Tensor rotate_bilinear(const at::Tensor& image, double degrees);

}  // namespace sparsight
