// Whether tensors have been written to, for copies of them that are used until then.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// Grows whenever one of the tensors is written to by torch's operations or our optimisers. Tensors of inference mode
// have no versions and count as unchanged.
inline int64_t total_version(const std::vector<at::Tensor>& tensors) {
  int64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += tensor.is_inference() ? 0 : tensor._version();
  return sum;
}

}  // namespace sparsight
