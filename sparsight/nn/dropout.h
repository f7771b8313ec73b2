// Dropout and drop path (stochastic depth), drawn from named streams. Call them in training only. What an image draws
// is keyed by its number in the whole batch, of which x has the images from `first_image` on: splitting a batch changes
// nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"

namespace sparsight {

// Zeroes each element with probability `rate` (0 <= rate < 1) and scales the others by 1/(1-rate). x: [B,...]
at::Tensor dropout(const at::Tensor& x, double rate, const RandomStream& stream, int64_t first_image = 0);
// The same for whole images.
at::Tensor drop_path(const at::Tensor& x, double rate, const RandomStream& stream, int64_t first_image = 0);

}  // namespace sparsight
