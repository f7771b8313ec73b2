// The reference version of ops/top_experts.h, on any device.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight::ref {

at::Tensor top_experts(const at::Tensor& scores, int64_t k);

}  // namespace sparsight::ref
