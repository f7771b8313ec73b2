#include "sparsight/kernels/pack/packed_matrix.h"

#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/kernels/memory/arena.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kTileColumns = 16;

// Steps between neighbours of a matrix in memory.
struct Steps {
  int64_t row, column;
};
Steps steps_of(Outputs outputs, int64_t ld) { return outputs == Outputs::columns ? Steps{ld, 1} : Steps{1, ld}; }

// Calls whole(index of the first element in the matrix, index in the panels) for groups of rows of 16 columns that lie
// in the matrix; for each element of the others, move(index in the matrix, index in the panels), or pad(index in the
// panels) for padding.
template <class Whole, class Move, class Pad>
void for_elements(const PackedMatrix& m, const Steps& steps, const Whole& whole, const Move& move, const Pad& pad) {
  const PanelOrder& order = m.order();
  int64_t at = 0;
  const auto part = [&](int64_t row, int64_t tile) {
    for (int64_t column = tile; column < tile + kTileColumns; ++column)
      for (int64_t i = row; i < row + order.group; ++i, ++at)
        if (i < m.rows() && column < m.columns())
          move(i * steps.row + column * steps.column, at);
        else
          pad(at);
  };
  for (int64_t panel = 0; panel < order.padded(m.columns()); panel += order.panel)
    for (int64_t step = 0; step < order.padded_rows(m.rows()); step += order.depth)
      for (int64_t tile = panel; tile < panel + order.panel; tile += kTileColumns)
        for (int64_t row = step; row < step + order.depth; row += order.group) {
          if (row + order.group > m.rows() || tile + kTileColumns > m.columns()) {
            part(row, tile);
            continue;
          }
          whole(row * steps.row + tile * steps.column, at);
          at += order.group * kTileColumns;
        }
}

// Calls copy(element of the matrix, element of the panels), both from their first ones on, for a group of kGroup rows.
template <int kGroup, class Copy>
[[gnu::always_inline]] inline void for_group(const Steps& steps, const Copy& copy) {
  if (steps.row == 1) {
    for (int64_t column = 0; column < kTileColumns; ++column)
      for (int64_t i = 0; i < kGroup; ++i) copy(column * steps.column + i, column * kGroup + i);
  } else {
    for (int64_t i = 0; i < kGroup; ++i)
      for (int64_t column = 0; column < kTileColumns; ++column) copy(i * steps.row + column, column * kGroup + i);
  }
}
template <class Copy>
[[gnu::always_inline]] inline void for_group(int64_t group, const Steps& steps, const Copy& copy) {
  group == 1 ? for_group<1>(steps, copy) : group == 2 ? for_group<2>(steps, copy) : for_group<4>(steps, copy);
}

// Calls body(0 of the type's stored number).
template <class Body>
void with_type(WeightType type, const Body& body) {
  if (type == WeightType::fp32) return body(float{});
  if (type == WeightType::bf16) return body(uint16_t{});
  body(int8_t{});
}

}  // namespace

int64_t PackedMatrix::memory_bytes(const PanelOrder& order, int64_t rows, int64_t columns) {
  return order.bytes(rows, columns) + (order.type == WeightType::int8 ? columns * int64_t{sizeof(float)} : 0);
}

PackedMatrix::PackedMatrix(const PanelOrder& order, int64_t rows, int64_t columns)
    : PackedMatrix(order, rows, columns, shared_array(memory_bytes(order, rows, columns))) {}

PackedMatrix::PackedMatrix(const PanelOrder& order, int64_t rows, int64_t columns, std::shared_ptr<const void> memory)
    : order_(order), rows_(rows), columns_(columns), owner_(std::move(memory)) {
  // (What is only read is not written through a matrix.)
  panels_ = const_cast<void*>(owner_.get());
  if (order.type == WeightType::int8) scale_ = reinterpret_cast<float*>(static_cast<char*>(panels_) + bytes());
}

PackedMatrix::PackedMatrix(const PanelOrder& order, int64_t rows, int64_t columns, void* panels, float* scale,
                           std::shared_ptr<const void> owner)
    : order_(order), rows_(rows), columns_(columns), panels_(panels), scale_(scale), owner_(std::move(owner)) {}

void PackedMatrix::pack(const MatrixView& weights, Outputs outputs) const {
  const bool by_column = outputs == Outputs::columns;
  SPARSIGHT_CHECK(weights.type == type() && (by_column ? weights.columns : weights.rows) == columns_ &&
                  (by_column ? weights.rows : weights.columns) == rows_);
  if (scale_) std::copy_n(weights.scale, columns_, scale_);
  // Where the rows of a group lie together in memory, a group of four bytes is moved as one number.
  const int64_t group = order_.group;
  const bool words = order_.depth == group && group * order_.element() == int64_t{sizeof(float)};
  if (words && (by_column ? group == 1 : rows_ % group == 0 && weights.ld() % group == 0))
    return kernels().pack_panels({static_cast<const float*>(weights.data), weights.ld() / group, !by_column,
                                  rows_ / group, columns_, WeightType::fp32, panels_});
  with_type(type(), [&](auto zero) {
    const auto* const from = static_cast<const decltype(zero)*>(weights.data);
    auto* const to = static_cast<decltype(zero)*>(panels_);
    const Steps steps = steps_of(outputs, weights.ld());
    for_elements(
        *this, steps,
        [&](int64_t first, int64_t at) {
          for_group(order_.group, steps, [&](int64_t i, int64_t j) { to[at + j] = from[first + i]; });
        },
        [&](int64_t element, int64_t at) { to[at] = from[element]; }, [&](int64_t at) { to[at] = zero; });
  });
}

void PackedMatrix::pack_columns(const WeightView& weights, int64_t expert, int64_t first, int64_t count) const {
  kernels().pack_panels({weights.at(expert, 0, first), weights.ld(), weights.transposed, rows_, count, type(),
                         static_cast<char*>(panels_) + first * order_.padded_rows(rows_) * order_.element()});
}

void PackedMatrix::unpack(Outputs outputs, void* weights, int64_t ld, float* scale) const {
  if (scale_) std::copy_n(scale_, columns_, scale);
  with_type(type(), [&](auto zero) {
    const auto* const from = static_cast<const decltype(zero)*>(panels_);
    auto* const to = static_cast<decltype(zero)*>(weights);
    const Steps steps = steps_of(outputs, ld);
    for_elements(
        *this, steps,
        [&](int64_t first, int64_t at) {
          for_group(order_.group, steps, [&](int64_t i, int64_t j) { to[first + i] = from[at + j]; });
        },
        [&](int64_t element, int64_t at) { to[element] = from[at]; }, [](int64_t) {});
  });
}

void PackedMatrix::serve(Gemm& p, int64_t row, int64_t column) const {
  const int64_t depth = order_.padded_rows(rows_);
  p.b = static_cast<const char*>(panels_) + (column * depth + row * kPanelColumns) * order_.element();
  p.b_panels = true, p.b_transposed = false;
  p.b_type = type();
  p.b_panel_rows = depth;
  p.b_scale = scale_ ? scale_ + column : nullptr;
}

}  // namespace sparsight::cpu
