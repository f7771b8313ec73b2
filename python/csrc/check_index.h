// Checks tensors from callers.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/ops/aminmax.h>

#include "sparsight/core/error.h"

namespace sparsight::python {

// A contiguous copy, whose values another thread cannot change between this check and their use. Raises Error if
// `index` is not int64 or has a value below `low` or above `high - 1`.
inline at::Tensor checked_index(const at::Tensor& index, const char* name, int64_t low, int64_t high) {
  if (index.scalar_type() != at::kLong) fail(name, " must be int64, got ", index.scalar_type());
  const at::Tensor own = index.clone(at::MemoryFormat::Contiguous);
  if (own.numel() == 0) return own;
  const auto [minimum, maximum] = at::aminmax(own);
  if (minimum.item<int64_t>() < low || maximum.item<int64_t>() >= high)
    fail(name, " must lie between ", low, " and ", high - 1, ", got ", minimum.item<int64_t>(), " to ",
         maximum.item<int64_t>());
  return own;
}

// Raises Error for complex numbers. An undefined tensor passes.
inline void check_real(const at::Tensor& x, const std::string& name) {
  if (x.defined() && x.is_complex()) fail(name, " must be real numbers, got ", x.scalar_type(), " ", x.sizes());
}

}  // namespace sparsight::python
