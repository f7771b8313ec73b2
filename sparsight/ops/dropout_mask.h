// Dropout masks of one bit per element, a thirty-second of their fp32 factors (keep_mask_rows() of random_fill.h): what
// a fused operation keeps for its backward pass. Letters: moe/axes.md; R rows.
#pragma once

#include "sparsight/ops/random_fill.h"

namespace sparsight {

// An element is multiplied by `scale` where its bit is 1, else by 0.
struct DropoutMask {
  at::Tensor bits = {};  // [R,ceil(columns/8)] uint8 on the CPU: column c is bit c % 8 of byte c / 8; undefined: none
  float scale = 1;       // 1 / keep
  bool defined() const { return bits.defined(); }
};

// The mask whose factors are keep_mask_rows(like, rows, keep, stream), bit for bit. 0 < keep < 1.
DropoutMask dropout_mask(const RandomRows& rows, double keep, const RandomStream& stream);

// [R,columns], of the type and device of `like`.
at::Tensor dropout_factors(const DropoutMask& mask, int64_t columns, const at::Tensor& like);

}  // namespace sparsight
