#include "sparsight/kernels/gemm/packed_linear.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace sparsight::cpu {

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
  pack_panels(order(), {inputs_, outputs_, 1, inputs_}, weight.data, panels_.get());
}

StoredMatrix PackedLinear::stored() const {
  StoredMatrix out(type_, outputs_, inputs_, Outputs::rows);
  out.scale() = scale_;
  unpack_panels(order(), {inputs_, outputs_, 1, inputs_}, panels_.get(), out.data());
  return out;
}

int64_t PackedLinear::bytes() const { return order().bytes(inputs_, outputs_); }

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
