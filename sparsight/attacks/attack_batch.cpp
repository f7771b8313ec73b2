#include "sparsight/attacks/attack_batch.h"

namespace sparsight {

AttackBatch AttackBatch::select(const at::Tensor& index) const {
  const auto rows = [&](const at::Tensor& values) {
    return values.defined() ? values.index_select(0, index) : at::Tensor();
  };
  return {rows(pixels), {rows(labels.label), rows(labels.target), labels.targeted}, rows(image), clean, rows(row)};
}

}  // namespace sparsight
