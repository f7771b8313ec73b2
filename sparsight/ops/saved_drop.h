// Keeps a branch's drop from the forward for the backward pass.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/ops/residual_add.h"

namespace sparsight {

inline void save_drop(torch::autograd::AutogradContext* context, const BranchDrop& drop) {
  context->saved_data["drop_bits"] = drop.dropout.bits;
  context->saved_data["drop_scale"] = static_cast<double>(drop.dropout.scale);
  context->saved_data["drop_rows"] = drop.row_factor;
}

inline BranchDrop saved_drop(torch::autograd::AutogradContext* context) {
  return {
      {context->saved_data["drop_bits"].toTensor(), static_cast<float>(context->saved_data["drop_scale"].toDouble())},
      context->saved_data["drop_rows"].toTensor()};
}

}  // namespace sparsight
