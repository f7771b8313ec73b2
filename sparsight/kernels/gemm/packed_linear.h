// The weights of a fully connected layer packed for inference: panels of columns, in the order in which the kernels
// read them (docs/kernels.md, "Packed weights"). No torch types.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sparsight/kernels/pack/packed_matrix.h"

namespace sparsight::cpu {

// I inputs, O outputs. bf16 is multiplied with rows rounded to bf16 where the CPU does that, else widened to fp32 in
// registers; int8 has one scale per output, max|w| / 127, and is multiplied with rows quantised to int8
// (elementwise/integers_inl.h).
class PackedLinear {
 public:
  PackedLinear() = default;
  // weight: [O,I], row-major; bias: [O], or null for zeros. Both are copied. A weight that is NaN or infinite makes its
  // output NaN (int8) or whatever follows from it.
  // together: rows of the panels that are stored together (kernels.h); convolutions take one at a time.
  PackedLinear(const float* weight, const float* bias, int64_t inputs, int64_t outputs, WeightType type)
      : PackedLinear(weight, bias, inputs, outputs, type, rows_together(type)) {}
  PackedLinear(const float* weight, const float* bias, int64_t inputs, int64_t outputs, WeightType type,
               int64_t together);
  // weight: [O,I], outputs are rows.
  PackedLinear(const MatrixView& weight, const float* bias, int64_t together);
  PackedLinear(const MatrixView& weight, const float* bias) : PackedLinear(weight, bias, rows_together(weight.type)) {}
  // matrix: [I,O], whose memory is shared; bias: [O], which is copied.
  PackedLinear(PackedMatrix matrix, const float* bias)
      : matrix_(std::move(matrix)), bias_(bias, bias + matrix_.columns()) {}

  int64_t inputs() const { return matrix_.rows(); }
  int64_t outputs() const { return matrix_.columns(); }
  WeightType type() const { return matrix_.type(); }
  const float* bias() const { return bias_.data(); }
  int64_t bytes() const { return matrix_.bytes(); }
  StoredMatrix stored() const;  // [O,I]: what it was made of

  // The product with outputs first .. first + count, without rows and without a place for the result. `first` is a
  // multiple of kPanelColumns.
  Gemm gemm(int64_t first, int64_t count) const { return gemm(first, count, 0, inputs()); }
  // The same with `inputs` inputs from `first_input` on, a multiple of kBlock unless rows are stored one at a time.
  Gemm gemm(int64_t first, int64_t count, int64_t first_input, int64_t inputs) const;

 private:
  PackedMatrix matrix_;  // [I,O]
  std::vector<float> bias_;
};

}  // namespace sparsight::cpu
