#include "sparsight/attacks/target_classes.h"

#include <algorithm>
#include <limits>

namespace sparsight {

at::Tensor target_classes(const at::Tensor& logits, int64_t wanted, const at::Tensor& label) {
  constexpr double kFirst = std::numeric_limits<double>::infinity();
  const at::Tensor ranked = label.defined() ? logits.scatter(1, label.unsqueeze(1), kFirst) : logits;
  const at::Tensor order = std::get<1>(ranked.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true));
  return order.narrow(1, 1, std::min(wanted, logits.size(1) - 1)).contiguous();
}

AttackBatch with_target(AttackBatch batch, const at::Tensor& targets, int64_t rank) {
  batch.labels.target = targets.select(1, rank);
  return batch;
}

}  // namespace sparsight
