#include "sparsight/moe/finish_routing.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/validate_routing.h"
#include "sparsight/ops/sort_by_expert.h"

namespace sparsight {

void choose_per_token(Routing& routing, const at::Tensor& expert, const at::Tensor& gate) {
  if (expert.dim() != 2 || expert.size(0) != routing.tokens || gate.sizes() != expert.sizes())
    throw InvalidRouting(cat("choose_per_token() takes expert and gate [", routing.tokens, ",K], got ", expert.sizes(),
                             " and ", gate.sizes()));
  const int64_t tokens = expert.size(0), k = expert.size(1);
  routing.per_token = k;
  // arange(), expand() and reshape() would take longer than the routing of one small image.
  at::Tensor token = at::empty({tokens * k}, at::kLong), rank = at::empty({tokens * k}, at::kLong);
  int64_t *of_token = token.data_ptr<int64_t>(), *of_rank = rank.data_ptr<int64_t>();
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t q = 0; q < k; ++q) *of_token++ = t, *of_rank++ = q;
  routing.token = token.to(expert.device());
  routing.rank = rank.to(expert.device());
  routing.expert = expert.reshape({-1});
  routing.gate = gate.reshape({-1});
}

void finish_routing(Routing& routing) {
  check_assignments(routing);
  const int64_t assignments = routing.expert.size(0);
  if (!routing.kept.defined()) routing.kept = at::ones({assignments}, routing.expert.options().dtype(at::kBool));
  routing.chosen_count = count_by_expert(routing.expert, routing.experts);
  const ExpertGroups groups = sort_by_expert(routing.expert, routing.kept, routing.experts);
  routing.order = groups.order;
  routing.offsets = groups.offsets;
}

// What is left of the groups has their order, so nothing is sorted again.
void keep_only(Routing& routing, const at::Tensor& kept) {
  routing.kept = kept;
  const at::Tensor stays = kept.index_select(0, routing.order);
  const at::Tensor before = at::cat({at::zeros({1}, routing.order.options()), stays.cumsum(0)});
  routing.order = routing.order.masked_select(stays);
  routing.offsets = before.index_select(0, routing.offsets);
}

void select_assignments(Routing& routing, const at::Tensor& wanted) {
  for (at::Tensor* tensor :
       {&routing.token, &routing.expert, &routing.rank, &routing.gate, &routing.kept, &routing.position})
    if (tensor->defined()) *tensor = tensor->index_select(0, wanted);
  finish_routing(routing);
}

Routing with_first_tokens(Routing routing, int64_t count) {
  if (routing.soft) return routing;
  keep_only(routing, routing.kept.logical_and(routing.token.remainder(routing.layout.per_image) < count));
  return routing;
}

void drop_padding(Routing& routing, const at::Tensor& valid) {
  SPARSIGHT_CHECK(valid.scalar_type() == at::kBool && valid.dim() == 1 && valid.size(0) == routing.tokens);
  routing.valid = valid;
  // Losses give padding no weight, but NaN times 0 is NaN, in gradients too.
  const at::Tensor padding = valid.logical_not().unsqueeze(1);
  for (at::Tensor* rows : {&routing.clean_logits, &routing.noisy_logits, &routing.noise_scale, &routing.scores})
    if (rows->defined() && rows->dim() == 2) *rows = rows->masked_fill(padding, 0);
  select_assignments(routing, at::nonzero(valid.index_select(0, routing.token)).squeeze(1));
}

}  // namespace sparsight
