#include "sparsight/moe/routers/expert_picks.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/scatter_reduce.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"

namespace sparsight {

at::Tensor ranked_tokens(const at::Tensor& scores, int64_t groups, const at::Tensor& valid) {
  const int64_t experts = scores.size(1);
  SPARSIGHT_CHECK(groups > 0 ? scores.size(0) % groups == 0 : scores.size(0) == 0);
  const int64_t per_group = groups > 0 ? scores.size(0) / groups : 0;
  const at::Tensor by_expert = scores.detach().t().reshape({experts, groups, per_group});
  const at::Tensor nan = at::isnan(by_expert);
  const at::Tensor order = at::argsort(by_expert.masked_fill(nan, -std::numeric_limits<double>::infinity()),
                                       /*stable=*/true, /*dim=*/2, /*descending=*/true);
  // NaN ties with -inf above, and padding is not sorted last yet.
  at::Tensor last = nan.to(at::kLong);
  if (valid.defined()) last = last.masked_fill(valid.reshape({1, groups, per_group}).logical_not(), 2);
  return order.gather(2, at::argsort(last.gather(2, order), /*stable=*/true, 2, /*descending=*/false));
}

void choose_per_expert(Routing& routing, const at::Tensor& ranked, const at::Tensor& count) {
  const int64_t per_group = ranked.size(2);
  const at::Tensor ranks = at::arange(per_group, ranked.options());
  const at::Tensor taken = at::nonzero((ranks < count.unsqueeze(-1)).expand_as(ranked));  // [A,3] by expert, rank last
  const at::Tensor expert = taken.select(1, 0), group = taken.select(1, 1), rank = taken.select(1, 2);
  const at::Tensor flat = (expert * ranked.size(1) + group) * per_group + rank;
  routing.per_token = 0;
  routing.expert = expert.contiguous();
  routing.rank = rank.contiguous();
  routing.token = group * per_group + ranked.reshape({-1}).index_select(0, flat);
}

at::Tensor at_assignments(const Routing& routing, const at::Tensor& dense) {
  return dense.reshape({-1}).index_select(0, routing.token * routing.experts + routing.expert);
}

at::Tensor softmax_by_group(const at::Tensor& values, const at::Tensor& group, int64_t groups) {
  const at::Tensor plain = values.detach();
  const at::Tensor largest = at::full({groups}, -std::numeric_limits<double>::infinity(), plain.options())
                                 .scatter_reduce(0, group, plain, "amax");
  const at::Tensor e = (values - largest.index_select(0, group)).exp();
  const at::Tensor sum = at::zeros({groups}, plain.options()).index_add(0, group, e);
  return e / sum.index_select(0, group);  // at least 1 for a group with members
}

int64_t valid_tokens(const at::Tensor& valid, int64_t tokens) {
  return valid.defined() ? valid.sum().item<int64_t>() : tokens;
}

}  // namespace sparsight
