#include "sparsight/moe/routers/group_members.h"

#include <ATen/ops/nonzero.h>

namespace sparsight {

GroupMembers group_members(const Routing& of_groups, int64_t group) {
  const int64_t first = of_groups.offsets[group].item<int64_t>(), last = of_groups.offsets[group + 1].item<int64_t>();
  at::Tensor assignment = of_groups.order.slice(0, first, last);
  at::Tensor token = of_groups.token.index_select(0, assignment);
  if (of_groups.valid.defined()) {
    const at::Tensor counts = at::nonzero(of_groups.valid.index_select(0, token)).squeeze(1);
    assignment = assignment.index_select(0, counts);
    token = token.index_select(0, counts);
  }
  const auto [sorted, by_token] = token.sort();
  return {sorted, assignment.index_select(0, by_token)};
}

}  // namespace sparsight
