#include "sparsight/moe/losses/importance.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/moe/losses/token_sums.h"

namespace sparsight {

at::Tensor cv_squared(const at::Tensor& values, bool unbiased) {
  const at::Tensor mean = values.mean(-1, /*keepdim=*/true);
  const auto n = static_cast<double>(values.size(-1));
  // Squared differences, not E[v²] - mean²: the difference cancels near balance.
  const at::Tensor variance = (values - mean).square().sum(-1) / (unbiased ? std::max(1.0, n - 1) : n);
  const at::Tensor centre = mean.squeeze(-1);
  const at::Tensor empty = centre == 0;
  const at::Tensor divisor = at::where(empty, at::ones_like(centre), centre.square());
  return at::where(empty, at::zeros_like(centre), variance / divisor);
}

at::Tensor importance(const Routing& routing) {
  return at::zeros({routing.experts}, routing.gate.options()).index_add(0, routing.expert, routing.gate);
}

at::Tensor importance_loss(const Routing& routing, bool unbiased) { return cv_squared(importance(routing), unbiased); }

at::Tensor dense_importance(const Routing& routing) {
  return group_sums(routing, at::softmax(routing.clean_logits, 1));
}

at::Tensor vmoe_importance_loss(const Routing& routing, bool unbiased) {
  if (!routing.clean_logits.defined()) return {};
  return group_mean(routing, cv_squared(dense_importance(routing), unbiased));
}

}  // namespace sparsight
