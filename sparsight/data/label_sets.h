// Images with several classes each.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// The first class of each image. sets: [N,K] bool or 0 and 1, with at least one class in each row. Returns [N] int64.
at::Tensor first_classes(const at::Tensor& sets);

}  // namespace sparsight
