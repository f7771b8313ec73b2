// Antialiased resizing of byte images, bit by bit that of Pillow.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace sparsight {

// image: [C,H,W] uint8 -> [C,height,width], contiguous. filter: "bilinear" or "bicubic". As Pillow 3.3 to 12: weights
// of 22 bits, first along x, then along y, rounded to bytes between. (Pillow 13 takes y first where that is faster,
// which can round a level differently.)
at::Tensor resize_bytes(const at::Tensor& image, int64_t height, int64_t width, const std::string& filter);

}  // namespace sparsight
