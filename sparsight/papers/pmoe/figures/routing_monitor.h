// The epoch from which joint training routes as its theorem assumes: Chowdhury et al. 2023, "Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", assumption 4.4: from some
// step on, some expert gives the pattern of a class its largest gate in all samples of that class.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sparsight/analysis/patch_routing_report.h"
#include "sparsight/papers/pmoe/two_layer/patch_sgd.h"

namespace sparsight::pmoe {

struct RoutingMoment {
  int64_t epoch = 0;                         // 0: before training
  std::array<int64_t, 2> expert = {};        // the best expert for each class
  std::array<double, 2> share = {};          // fraction of the class's samples whose pattern gets its largest gate
  std::array<double, 2> smallest_gate = {};  // minimum gate of these patterns; at least 1/l
};

// The router's current behaviour on `data`.
RoutingMoment routing_moment(PatchCnn& model, const PatchSet& data, int64_t epoch);

// The first epoch from which the best experts of both classes stay at `share` or above; null if there is none.
std::optional<int64_t> stable_from(const std::vector<RoutingMoment>& moments, double share);

}  // namespace sparsight::pmoe
