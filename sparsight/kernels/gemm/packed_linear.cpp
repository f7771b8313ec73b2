#include "sparsight/kernels/gemm/packed_linear.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace sparsight::cpu {
namespace {

int64_t rounded(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Calls store(index in the panels, output, input) for every weight.
template <class Store>
void for_weights(int64_t inputs, int64_t outputs, int64_t together, const Store& store) {
  const int64_t rows = rounded(inputs, together);
  for (int64_t j = 0; j < outputs; ++j) {
    const int64_t panel = j / kPanelColumns * rows, column = j % kPanelColumns;
    for (int64_t l = 0; l < inputs; ++l)
      store((panel + l / together * together) * kPanelColumns + column * together + l % together, j, l);
  }
}

// Calls body(0 of the type's stored number).
template <class Body>
void with_type(WeightType type, const Body& body) {
  if (type == WeightType::fp32) return body(float{});
  if (type == WeightType::bf16) return body(uint16_t{});
  body(int8_t{});
}

}  // namespace

void PackedLinear::Free::operator()(void* memory) const { std::free(memory); }

PackedLinear::PackedLinear(const float* weight, const float* bias, int64_t inputs, int64_t outputs, WeightType type,
                           int64_t together)
    : PackedLinear(type == WeightType::fp32 ? MatrixView::fp32(weight, outputs, inputs)
                                            : StoredMatrix(weight, type, outputs, inputs, Outputs::rows).view(),
                   bias, together) {}

PackedLinear::PackedLinear(const MatrixView& weight, const float* bias, int64_t together)
    : inputs_(weight.columns),
      outputs_(weight.rows),
      together_(together),
      type_(weight.type),
      bias_(static_cast<size_t>(weight.rows), 0.0f) {
  if (bias) std::copy_n(bias, outputs_, bias_.begin());
  if (weight.scale) scale_.assign(weight.scale, weight.scale + outputs_);
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes(), 64));
  panels_.reset(std::aligned_alloc(64, (size + 63) / 64 * 64));
  if (!panels_) throw std::bad_alloc();
  std::fill_n(static_cast<char*>(panels_.get()), size, '\0');
  if (type_ == WeightType::fp32) {
    kernels().pack_panels({static_cast<const float*>(weight.data), inputs_, /*transposed=*/true, inputs_, outputs_,
                           type_, panels_.get()});
    return;
  }
  with_type(type_, [&](auto number) {
    using T = decltype(number);
    const T* const from = static_cast<const T*>(weight.data);
    T* const to = static_cast<T*>(panels_.get());
    for_weights(inputs_, outputs_, together_,
                [&](int64_t index, int64_t j, int64_t l) { to[index] = from[j * inputs_ + l]; });
  });
}

StoredMatrix PackedLinear::stored() const {
  StoredMatrix out(type_, outputs_, inputs_, Outputs::rows);
  out.scale() = scale_;
  with_type(type_, [&](auto number) {
    using T = decltype(number);
    const T* const from = static_cast<const T*>(panels_.get());
    T* const to = static_cast<T*>(out.data());
    for_weights(inputs_, outputs_, together_,
                [&](int64_t index, int64_t j, int64_t l) { to[j * inputs_ + l] = from[index]; });
  });
  return out;
}

int64_t PackedLinear::bytes() const { return rounded(outputs_, kPanelColumns) * panel_rows() * element_bytes(type_); }

Gemm PackedLinear::gemm(int64_t first, int64_t count) const {
  Gemm p;
  p.n = count, p.k = inputs_;
  p.b = static_cast<const char*>(panels_.get()) + first * panel_rows() * element_bytes(type_);
  p.b_panels = true, p.b_type = type_;
  p.b_scale = scale_.empty() ? nullptr : scale_.data() + first;
  p.bias = bias_.data() + first;
  return p;
}

Gemm PackedLinear::gemm(int64_t first, int64_t count, int64_t first_input, int64_t inputs) const {
  Gemm p = gemm(first, count);
  p.k = inputs, p.b_panel_rows = panel_rows();
  p.b = static_cast<const char*>(p.b) + first_input * kPanelColumns * element_bytes(type_);
  return p;
}

}  // namespace sparsight::cpu
