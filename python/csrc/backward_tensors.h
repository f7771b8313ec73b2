// What the backward operators share: checks of what autograd passes back, and gradients that are absent.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"

namespace sparsight::python {

// The kernels do not check the tensors that autograd passes back. owner: whose type and device they have, "the
// tokens'".
inline void check_saved(const at::Tensor& x, const char* name, at::IntArrayRef sizes, const at::Tensor& like,
                        const char* owner) {
  if (x.sizes() != sizes || x.scalar_type() != like.scalar_type() || x.device() != like.device())
    fail(name, " must be ", sizes, " of ", owner, " ", like.scalar_type(), " on ", like.device(), ", got ", x.sizes(),
         " of ", x.scalar_type(), " on ", x.device());
}

// Operators return no undefined tensors: [0] stands for one.
inline at::Tensor or_nothing(const at::Tensor& x, const at::Tensor& like) {
  return x.defined() ? x.contiguous() : at::empty({0}, like.options());
}

}  // namespace sparsight::python
