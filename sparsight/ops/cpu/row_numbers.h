// A RowMap as the kernels read it.
#pragma once

#include "sparsight/kernels/routing/rows.h"
#include "sparsight/ops/rows.h"

namespace sparsight::cpu {

// The tensors of `map` outlive the result.
inline RowNumbers row_numbers(const RowMap& map) {
  return {.tokens = map.tokens,
          .rows = map.row_token.size(0),
          .row_token = map.row_token.const_data_ptr<int64_t>(),
          .token_rows = map.token_rows.const_data_ptr<int64_t>(),
          .token_offsets = map.token_offsets.const_data_ptr<int64_t>()};
}

}  // namespace sparsight::cpu
