// Conversion of bytes to floats.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// image: [C,H,W] uint8 -> x * scale[c] + shift[c], [C,H,W] fp32, contiguous. One value applies to all channels.
at::Tensor scale_bytes(const at::Tensor& image, const std::vector<float>& scale, const std::vector<float>& shift);

// uint8 0..255 -> fp32 0..1, as b * fp32(1/255); other types are converted to fp32 with the same values.
at::Tensor to_float(const at::Tensor& image);

// The same as b / 255, correctly rounded: times 255 it is exactly b again. For models that normalise.
at::Tensor to_exact_float(const at::Tensor& image);

}  // namespace sparsight
