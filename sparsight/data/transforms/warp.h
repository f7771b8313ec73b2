// Shear, shift and rotation of byte images.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace sparsight {

// The source of an output pixel, as offsets from the image's centre: source = (a x + b y + c, d x + e y + f).
using WarpMatrix = std::array<double, 6>;

// image: [C,H,W] uint8 -> the same shape; each pixel is the nearest source pixel, or `fill` outside of the image.
at::Tensor warp(const at::Tensor& image, const WarpMatrix& matrix, uint8_t fill);

// [C,H,W] uint8 turned counter-clockwise about its centre, with bilinear interpolation and 0 outside of the image: the
// bytes of Pillow's Image.rotate(degrees, BILINEAR).
at::Tensor rotate_bilinear(const at::Tensor& image, double degrees);

}  // namespace sparsight
