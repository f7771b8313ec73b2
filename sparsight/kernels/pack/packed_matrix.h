// A matrix of weights packed into panels (panels.h), in fp32, bf16 or int8: B of products, whose columns are the
// outputs of its layer. Its memory is its own or somebody else's, such as a mapped file's.
#pragma once

#include <memory>

#include "sparsight/kernels/gemm/weight_view.h"
#include "sparsight/kernels/pack/panels.h"
#include "sparsight/kernels/pack/stored_matrix.h"

namespace sparsight::cpu {

// Copies share the memory.
class PackedMatrix {
 public:
  // No matrix.
  PackedMatrix() = default;
  // [rows,columns] in memory of its own, which pack() or pack_columns() fills.
  PackedMatrix(const PanelOrder& order, int64_t rows, int64_t columns);
  // In this memory, of memory_bytes() and aligned to 64: panels, and then the scales of int8.
  PackedMatrix(const PanelOrder& order, int64_t rows, int64_t columns, std::shared_ptr<const void> memory);
  static int64_t memory_bytes(const PanelOrder& order, int64_t rows, int64_t columns);
  // panels: order.bytes(rows, columns) bytes, aligned to 64; scale: [columns] of int8, else null. Both stay where they
  // are while `owner` lives.
  PackedMatrix(const PanelOrder& order, int64_t rows, int64_t columns, void* panels, float* scale,
               std::shared_ptr<const void> owner = {});

  explicit operator bool() const { return panels_ != nullptr; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  const PanelOrder& order() const { return order_; }
  WeightType type() const { return order_.type; }
  const void* panels() const { return panels_; }
  int64_t bytes() const { return order_.bytes(rows_, columns_); }  // of the panels

  // Copies a matrix of this type, and its scales: of [rows,columns], or [columns,rows] where its rows are the outputs.
  void pack(const MatrixView& weights, Outputs outputs) const;
  // The columns first .. first + count, a multiple of kPanelColumns first, of a matrix in fp32 which the kernels round:
  // panels for vectors of fp32 or, at levels that multiply bf16, bf16.
  void pack_columns(const WeightView& weights, int64_t expert, int64_t first, int64_t count) const;
  // What pack() was given, exactly, into memory whose rows are `ld` apart, and [columns] scales of int8.
  void unpack(Outputs outputs, void* weights, int64_t ld, float* scale) const;

  // Makes the part from (row, column) on the B of the product. column: a multiple of kPanelColumns; row: one of kBlock,
  // or any where rows are stored one at a time.
  void serve(Gemm& p, int64_t row, int64_t column) const;

 private:
  PanelOrder order_;
  int64_t rows_ = 0, columns_ = 0;
  void* panels_ = nullptr;
  float* scale_ = nullptr;
  std::shared_ptr<const void> owner_;
};

}  // namespace sparsight::cpu
