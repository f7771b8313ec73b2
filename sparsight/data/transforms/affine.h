// Affine maps of byte images with bicubic interpolation, bit by bit those of Pillow.
#pragma once

#include "sparsight/data/transforms/warp.h"

namespace sparsight {

// image: [C,H,W] uint8 -> the same shape: the bytes of Pillow's Image.transform(size, AFFINE, matrix, BICUBIC,
// fillcolor=fill). Offsets in `matrix` are from the image's corner, with pixel centres at halves. Pixels whose source
// is outside of the image get `fill`.
at::Tensor affine_bicubic(const at::Tensor& image, const WarpMatrix& matrix, const BorderFill& fill);

// [C,H,W] uint8 turned counter-clockwise about its centre: Pillow's Image.rotate(degrees, BICUBIC, fillcolor=fill).
at::Tensor rotate_bicubic(const at::Tensor& image, double degrees, const BorderFill& fill);

}  // namespace sparsight
