#include "sparsight/moe/losses/token_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight {

int64_t valid_token_count(const Routing& routing) {
  return routing.valid.defined() ? routing.valid.sum().item<int64_t>() : routing.tokens;
}

at::Tensor without_padding(const Routing& routing, const at::Tensor& rows) {
  if (!routing.valid.defined()) return rows;
  const at::Tensor counts = rows.dim() == 1 ? routing.valid : routing.valid.unsqueeze(1);
  return at::where(counts, rows, at::zeros_like(rows));
}

at::Tensor group_sums(const Routing& routing, const at::Tensor& rows) {
  const at::Tensor counted = without_padding(routing, rows);
  if (routing.group_count == 1) return counted.sum(0, /*keepdim=*/true);
  return at::zeros({routing.group_count, rows.size(1)}, rows.options()).index_add(0, group_of_token(routing), counted);
}

at::Tensor group_mean(const Routing& routing, const at::Tensor& values) {
  if (!routing.valid.defined()) return values.mean();
  const at::Tensor counts = group_sizes(routing) > 0;
  return at::where(counts, values, at::zeros_like(values)).sum() / counts.sum().clamp_min(1);
}

at::Tensor ordered_sum(const at::Tensor& values) {
  constexpr int64_t kPart = 4096;  // below 32768, from which torch splits sums
  const at::Tensor flat = values.reshape({-1});
  const int64_t whole = flat.size(0) / kPart * kPart;
  if (whole == 0) return flat.sum();
  const at::Tensor parts = flat.narrow(0, 0, whole).view({-1, kPart}).sum(1);
  const at::Tensor rest = flat.narrow(0, whole, flat.size(0) - whole).sum(0, /*keepdim=*/true);
  return at::cat({parts, rest}).sum();
}

at::Tensor token_mean(const Routing& routing, const at::Tensor& rows) {
  const at::Tensor sum = ordered_sum(without_padding(routing, rows));
  if (!routing.valid.defined()) return sum / static_cast<double>(std::max<int64_t>(1, rows.size(0)));
  return sum / routing.valid.sum().clamp_min(1);
}

}  // namespace sparsight
