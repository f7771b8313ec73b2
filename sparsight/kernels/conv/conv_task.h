// What the convolution kernels of each level compute on one thread. Raw pointers, as in kernels.h. Feature maps are
// channels last: the patch under a KxK kernel is K runs of K times C floats, so that no patch needs to be copied.
#pragma once

#include <cstdint>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

// A part of the depth of a convolution: C += A [m,k] B [k,n], where row i of A is `runs` runs of `run` floats, the
// first at a[i] and each run_stride floats after the one before, and row i of C begins at c + c_rows[i]. The first part
// starts from bias (+ residual), the last may end with relu. Each element is one chain of multiply-adds over
// increasing k, so the bits do not depend on how positions and columns are split.
struct ConvProduct {
  int64_t m = 0, n = 0;
  const float* const* a = nullptr;  // [m]
  const int64_t* c_rows = nullptr;  // [m]
  int64_t runs = 0, run = 0, run_stride = 0;
  const void* b = nullptr;  // panels (kernels.h) of fp32 or bf16, at the first row of the part, in rows
  int64_t b_panel = 0;      // stride of the panels, in elements
  WeightType b_type = WeightType::fp32;
  bool first = true;
  const float* bias = nullptr;      // [n], added by the first part
  const float* residual = nullptr;  // rows as of C, added by the first part, or null; may be C itself
  float* c = nullptr;
  bool relu = false;  // of the finished elements
};

// y = scale x + shift (+ residual), then max(0, y) if `relu`, for `rows` rows of `width` contiguous elements; may be in
// place. `scale` and `shift`: [width].
struct ScaleShift {
  const float *x = nullptr, *scale = nullptr, *shift = nullptr, *residual = nullptr;
  float* y = nullptr;
  int64_t rows = 0, width = 0, ld = 0;  // ld: stride of x, y and residual
  bool relu = false;
};

}  // namespace sparsight::cpu
