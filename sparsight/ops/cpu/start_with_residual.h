// A product whose sums start from a residual: C = residual + bias, then + A B.
#pragma once

#include <algorithm>

#include "sparsight/ops/cpu/kernels.h"

namespace sparsight::cpu {

// p: row-major C, neither accumulating nor with an activation yet. residual: the rows of C, [m,n].
inline void start_with_residual(const Kernels& kernels, const float* residual, Gemm& p) {
  for (int64_t i = 0; i < p.m; ++i) {
    std::copy_n(residual + i * p.n, p.n, p.c + i * p.c_ld);
    if (p.bias) kernels.add_scaled(1, p.bias, p.c + i * p.c_ld, p.n);
  }
  p.accumulate = true;
  p.bias = nullptr;
}

}  // namespace sparsight::cpu
