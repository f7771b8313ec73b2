// Dropout and drop path (stochastic depth), from named random streams, for passes whose ForwardMode has them. The
// random samples of an image are keyed by its index alone: splitting a batch or removing images does not change them.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"

namespace sparsight {

// Zeroes each element with probability `rate` (0 <= rate < 1) and scales the others by 1/(1-rate). x: [B,...]. image:
// [B] int64 indices of the images; undefined: 0 .. B-1.
at::Tensor dropout(const at::Tensor& x, double rate, const RandomStream& stream, const at::Tensor& image = {});
// The same for whole images.
at::Tensor drop_path(const at::Tensor& x, double rate, const RandomStream& stream, const at::Tensor& image = {});

}  // namespace sparsight
