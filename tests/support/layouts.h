// Tensors with the same values in unusual memory layouts.
#pragma once

#include <torch/types.h>

namespace sparsight::test {

// Misaligned: starts one element after the start of its allocation.
inline at::Tensor misaligned(const at::Tensor& x) {
  const at::Tensor view = torch::empty({x.numel() + 1}, x.options()).narrow(0, 1, x.numel()).view(x.sizes());
  view.copy_(x);
  return view;
}

// With the last two dimensions transposed in memory; a vector as every second of twice as many elements.
inline at::Tensor strided(const at::Tensor& x) {
  if (x.dim() < 2) return torch::stack({x, x}, 1).select(1, 0);
  return x.transpose(-1, -2).contiguous().transpose(-1, -2);
}

}  // namespace sparsight::test
