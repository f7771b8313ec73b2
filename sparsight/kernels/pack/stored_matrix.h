// A matrix of weights as files hold it: row-major, in fp32, bf16, or int8 with a scale for each output. Packed matrices
// are made of it, and give it back exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

// Which side of a matrix are the outputs of the layer: rows as in torch's linear layers, columns as in experts.
enum class Outputs { rows, columns };

// Memory of somebody else.
struct MatrixView {
  WeightType type = WeightType::fp32;
  int64_t rows = 0, columns = 0;
  const void* data = nullptr;
  const float* scale = nullptr;  // of int8: a weight is its output's scale times the stored number
  int64_t row_stride = 0;        // numbers from row to row; 0: columns

  int64_t ld() const { return row_stride > 0 ? row_stride : columns; }
  int64_t bytes() const { return rows * columns * element_bytes(type); }
  // Rows first_row .. + part_rows and columns first_column .. + part_columns, where columns are the outputs.
  MatrixView part(int64_t first_row, int64_t part_rows, int64_t first_column, int64_t part_columns) const {
    const auto* const from = static_cast<const char*>(data) + (first_row * ld() + first_column) * element_bytes(type);
    return {type, part_rows, part_columns, from, scale ? scale + first_column : nullptr, ld()};
  }
  static MatrixView fp32(const float* data, int64_t rows, int64_t columns) {
    return {WeightType::fp32, rows, columns, data, nullptr};
  }
};

class StoredMatrix {
 public:
  StoredMatrix() = default;
  // Zeros.
  StoredMatrix(WeightType type, int64_t rows, int64_t columns, Outputs outputs)
      : type_(type),
        rows_(rows),
        columns_(columns),
        data_(static_cast<size_t>(rows * columns * element_bytes(type))),
        scale_(type == WeightType::int8 ? static_cast<size_t>(outputs == Outputs::rows ? rows : columns) : 0) {}
  // Rounds the numbers (quantise.h). A weight that is NaN or infinite makes its output NaN in int8.
  StoredMatrix(const float* weight, WeightType type, int64_t rows, int64_t columns, Outputs outputs);

  WeightType type() const { return type_; }
  MatrixView view() const { return {type_, rows_, columns_, data_.data(), scale_.empty() ? nullptr : scale_.data()}; }
  void* data() { return data_.data(); }
  std::vector<float>& scale() { return scale_; }

 private:
  WeightType type_ = WeightType::fp32;
  int64_t rows_ = 0, columns_ = 0;
  std::vector<uint8_t> data_;
  std::vector<float> scale_;
};

}  // namespace sparsight::cpu
