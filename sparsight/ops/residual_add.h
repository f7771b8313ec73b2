// The end of a residual branch: what its last product's rows go through before they are the block's output. Letters:
// moe/axes.md; R rows (tokens), O their width.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/ops/dropout_mask.h"

namespace sparsight {

// Each row y of a branch becomes row_factor * dropout(y).
struct BranchDrop {
  DropoutMask dropout = {};    // O columns
  at::Tensor row_factor = {};  // [R] fp32 on the CPU, as of drop path: 0 or 1/keep; undefined: ones
  bool defined() const { return dropout.defined() || row_factor.defined(); }
};

// residual + drop(y). residual: [R,O], or undefined for zeros.
struct ResidualAdd {
  at::Tensor residual = {};
  BranchDrop drop = {};
};

// drop(y), differentiable any number of times; y: [...,O] with R rows, of any type, on any device.
at::Tensor dropped(const at::Tensor& y, const BranchDrop& drop);
// The same without autograd, for contiguous fp32 on a CPU on the kernels; also the gradient of y from that of drop(y).
at::Tensor dropped_rows(const at::Tensor& y, const BranchDrop& drop);

// residual + drop(y), in torch's operations.
at::Tensor add_residual(const at::Tensor& y, const ResidualAdd& add);

}  // namespace sparsight
