#include "sparsight/papers/pmoe/figures/routing_monitor.h"

#include <algorithm>

namespace sparsight::pmoe {

RoutingMoment routing_moment(PatchCnn& model, const PatchSet& data, int64_t epoch) {
  const Routing routing = route_patches(model, data, 0, data.size());
  const at::Tensor relevant = at::arange(data.patches, at::kLong).unsqueeze(0) == data.position.unsqueeze(1);
  const PatchRoutingReport report = patch_routing_report(routing, data.labels, relevant, 2);
  RoutingMoment moment;
  moment.epoch = epoch;
  const at::Tensor image = routing.token.floor_divide(data.patches);
  const at::Tensor is_largest =
      (routing.rank == 0).logical_and(routing.token.remainder(data.patches) == data.position.index_select(0, image));
  for (int64_t k = 0; k < 2; ++k) {
    const int64_t best = report.best_expert(k);
    moment.expert[static_cast<size_t>(k)] = best;
    moment.share[static_cast<size_t>(k)] = report.largest_share(k, best).value_or(0);
    const at::Tensor here =
        is_largest.logical_and(routing.expert == best).logical_and(data.labels.index_select(0, image) == k);
    if (here.any().item<bool>())
      moment.smallest_gate[static_cast<size_t>(k)] = routing.gate.masked_select(here).min().item<double>();
  }
  return moment;
}

std::optional<int64_t> stable_from(const std::vector<RoutingMoment>& moments, double share) {
  std::optional<int64_t> from;
  for (const RoutingMoment& moment : moments) {
    const bool there = std::min(moment.share[0], moment.share[1]) >= share;
    if (!there) from.reset();
    if (there && !from) from = moment.epoch;
  }
  return from;
}

}  // namespace sparsight::pmoe
