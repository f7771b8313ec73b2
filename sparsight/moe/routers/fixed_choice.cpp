#include "sparsight/moe/routers/fixed_choice.h"

#include <ATen/ops/full.h>

#include "sparsight/moe/finish_routing.h"

namespace sparsight {

Routing route_fixed(const at::Tensor& expert, int64_t experts, const at::Tensor& like) {
  Routing routing;
  routing.tokens = expert.size(0);
  routing.experts = experts;
  const auto type = like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor chosen = expert.to(like.device());
  choose_per_token(routing, chosen,
                   at::full(chosen.sizes(), 1.0 / static_cast<double>(expert.size(1)), like.options().dtype(type)));
  finish_routing(routing);
  return routing;
}

}  // namespace sparsight
