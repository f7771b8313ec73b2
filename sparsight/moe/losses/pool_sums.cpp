#include "sparsight/moe/losses/pool_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight {

at::Tensor without_padding(const Routing& routing, const at::Tensor& rows) {
  if (!routing.valid.defined()) return rows;
  const at::Tensor counts = rows.dim() == 1 ? routing.valid : routing.valid.unsqueeze(1);
  return at::where(counts, rows, at::zeros_like(rows));
}

at::Tensor group_sums(const Routing& routing, const at::Tensor& rows) {
  const at::Tensor counted = without_padding(routing, rows);
  if (group_count(routing) == 1) return counted.sum(0, /*keepdim=*/true);
  return at::zeros({group_count(routing), rows.size(1)}, rows.options()).index_add(0, group_of_token(routing), counted);
}

at::Tensor token_mean(const Routing& routing, const at::Tensor& rows) {
  const at::Tensor sum = without_padding(routing, rows).sum();
  if (!routing.valid.defined()) return sum / static_cast<double>(std::max<int64_t>(1, rows.size(0)));
  return sum / routing.valid.sum().clamp_min(1);
}

}  // namespace sparsight
