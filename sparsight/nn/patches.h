// Images as non-overlapping patches. Letters: moe/axes.md.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// images: [B,C,H,W], H and W multiples of `side`. Returns [B,S,D], S = (H/side)*(W/side) patches row by row, D = C *
// side * side values in the order (channel, row, column) of a convolution's kernel.
at::Tensor image_patches(const at::Tensor& images, int64_t side);

// The images [B,C,height,width] of patches [B,S,D].
at::Tensor patches_to_images(const at::Tensor& patches, int64_t side, int64_t height, int64_t width);

}  // namespace sparsight
