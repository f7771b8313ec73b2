#include "sparsight/kernels/gemm/packed_linear.h"

#include <algorithm>

namespace sparsight::cpu {

PackedLinear::PackedLinear(const float* weight, const float* bias, int64_t inputs, int64_t outputs, WeightType type,
                           int64_t together)
    : PackedLinear(type == WeightType::fp32 ? MatrixView::fp32(weight, outputs, inputs)
                                            : StoredMatrix(weight, type, outputs, inputs, Outputs::rows).view(),
                   bias, together) {}

PackedLinear::PackedLinear(const MatrixView& weight, const float* bias, int64_t together)
    : matrix_(panel_order(weight.type, together), weight.columns, weight.rows),
      bias_(static_cast<size_t>(weight.rows), 0.0f) {
  if (bias) std::copy_n(bias, weight.rows, bias_.begin());
  matrix_.pack(weight, Outputs::rows);
}

StoredMatrix PackedLinear::stored() const {
  StoredMatrix out(type(), outputs(), inputs(), Outputs::rows);
  matrix_.unpack(Outputs::rows, out.data(), inputs(), out.scale().data());
  return out;
}

Gemm PackedLinear::gemm(int64_t first, int64_t count, int64_t first_input, int64_t inputs) const {
  Gemm p;
  p.n = count, p.k = inputs;
  matrix_.serve(p, first_input, first);
  p.bias = bias_.data() + first;
  return p;
}

}  // namespace sparsight::cpu
