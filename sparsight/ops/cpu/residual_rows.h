// A residual sum in a product's epilogue, on the rows of one task while they are in the cache. Without a drop the sums
// of the product start from the residual; with one they are scaled before it is added.
#pragma once

#include <algorithm>
#include <array>

#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/residual_add.h"

namespace sparsight::cpu {

class ResidualRows {
 public:
  ResidualRows() = default;
  // The tensors of `add` outlive this. width: O.
  ResidualRows(const ResidualAdd& add, int64_t width)
      : residual_(add.residual.defined() ? add.residual.const_data_ptr<float>() : nullptr),
        bits_(add.drop.dropout.defined() ? add.drop.dropout.bits.const_data_ptr<uint8_t>() : nullptr),
        row_factor_(add.drop.row_factor.defined() ? add.drop.row_factor.const_data_ptr<float>() : nullptr),
        scale_(add.drop.dropout.scale),
        width_(width) {}

  const float* residual() const { return residual_; }
  bool drops() const { return bits_ || row_factor_; }

  // p: a product whose row-major C is the rows from `first` on, neither accumulating nor with an activation yet.
  void start(const Kernels& kernels, int64_t first, Gemm& p) const {
    if (!residual_ || drops()) return;
    for (int64_t i = 0; i < p.m; ++i) {
      std::copy_n(residual_ + (first + i) * width_, width_, p.c + i * p.c_ld);
      if (p.bias) kernels.add_scaled(1, p.bias, p.c + i * p.c_ld, width_);
    }
    p.accumulate = true;
    p.bias = nullptr;
  }

  // rows: `count` finished rows from `first` on, [count,O].
  void finish(const Kernels& kernels, int64_t first, int64_t count, float* rows) const {
    if (!drops()) return;
    const int64_t bytes = (width_ + 7) / 8;
    for (int64_t i = first; i < first + count; ++i, rows += width_) {
      if (bits_) kernels.drop(bits_ + i * bytes, scale_, rows, width_);
      const std::array<float, 2> factors{row_factor_ ? row_factor_[i] : 1.0f, 1.0f};
      const std::array<const float*, 2> summands{rows, residual_ ? residual_ + i * width_ : nullptr};
      if (row_factor_ || residual_)
        kernels.scaled_sum(summands.data(), factors.data(), residual_ ? 2 : 1, rows, width_);
    }
  }

 private:
  const float* residual_ = nullptr;
  const uint8_t* bits_ = nullptr;
  const float* row_factor_ = nullptr;
  float scale_ = 1;
  int64_t width_ = 0;
};

}  // namespace sparsight::cpu
