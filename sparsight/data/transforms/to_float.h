// From bytes to numbers.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// uint8 0..255 -> fp32 0..1; an fp32 image comes back as it is.
at::Tensor to_float(const at::Tensor& image);

}  // namespace sparsight
