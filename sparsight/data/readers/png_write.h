// Writes PNG files.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sparsight {

// A PNG file of `image`, uint8 [C,H,W] with C 1 (grey) or 3 (RGB). Deterministic for given library versions.
std::string encode_png(const at::Tensor& image);

}  // namespace sparsight
