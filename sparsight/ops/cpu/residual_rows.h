// A residual sum as the kernels read it.
#pragma once

#include "sparsight/kernels/experts/residual_rows.h"
#include "sparsight/ops/cpu/weight_view.h"
#include "sparsight/ops/residual_add.h"

namespace sparsight::cpu {

// The tensors of `add` outlive the result. width: O.
inline ResidualRows residual_rows(const ResidualAdd& add, int64_t width) {
  const DropoutMask& dropout = add.drop.dropout;
  return {.residual = float_data(add.residual),
          .bits = dropout.defined() ? dropout.bits.const_data_ptr<uint8_t>() : nullptr,
          .scale = dropout.scale,
          .row_factor = float_data(add.drop.row_factor),
          .width = width};
}

}  // namespace sparsight::cpu
