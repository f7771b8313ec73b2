// Dropout and drop path (stochastic depth), drawn from named streams. Call them in training only.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"

namespace sparsight {

// Zeroes each element with probability `rate` (0 <= rate < 1) and scales the others by 1/(1-rate).
at::Tensor dropout(const at::Tensor& x, double rate, const RandomStream& stream);
// The same for whole images. x: [B,...]
at::Tensor drop_path(const at::Tensor& x, double rate, const RandomStream& stream);

}  // namespace sparsight
