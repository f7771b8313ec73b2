#include "sparsight/kernels/pack/stored_matrix.h"

#include <algorithm>

#include "sparsight/kernels/pack/quantise.h"

namespace sparsight::cpu {

StoredMatrix::StoredMatrix(const float* weight, WeightType type, int64_t rows, int64_t columns, Outputs outputs)
    : StoredMatrix(type, rows, columns, outputs) {
  const int64_t numbers = rows * columns;
  if (type == WeightType::fp32) {
    std::copy_n(weight, numbers, static_cast<float*>(data()));
  } else if (type == WeightType::bf16) {
    std::transform(weight, weight + numbers, static_cast<uint16_t*>(data()), to_bf16);
  } else {
    const bool by_row = outputs == Outputs::rows;
    for (size_t o = 0; o < scale_.size(); ++o) {
      const auto output = static_cast<int64_t>(o);
      scale_[o] =
          by_row ? int8_scale(weight + output * columns, columns, 1) : int8_scale(weight + output, rows, columns);
    }
    auto* const to = static_cast<int8_t*>(data());
    for (int64_t i = 0; i < numbers; ++i)
      to[i] = to_int8(weight[i], scale_[static_cast<size_t>(by_row ? i / columns : i % columns)]);
  }
}

}  // namespace sparsight::cpu
