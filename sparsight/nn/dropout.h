// Dropout and drop path (stochastic depth), drawn from named streams, for passes whose ForwardMode has them. What an
// image draws is keyed by its number and nothing else: splitting a batch, or dropping images from it, changes no other.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"

namespace sparsight {

// Zeroes each element with probability `rate` (0 <= rate < 1) and scales the others by 1/(1-rate). x: [B,...]. image:
// [B] int64 numbers of the images; undefined: 0 .. B-1.
at::Tensor dropout(const at::Tensor& x, double rate, const RandomStream& stream, const at::Tensor& image = {});
// The same for whole images.
at::Tensor drop_path(const at::Tensor& x, double rate, const RandomStream& stream, const at::Tensor& image = {});

}  // namespace sparsight
