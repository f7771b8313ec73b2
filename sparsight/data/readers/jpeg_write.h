// Writes JPEG files.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sparsight {

// A JPEG file of `image`, uint8 [C,H,W] with C 1 (grey) or 3 (RGB). quality: 1 to 100. Deterministic for given library
// versions.
std::string encode_jpeg(const at::Tensor& image, int quality);

}  // namespace sparsight
