// From when on joint training routes as its theorem assumes: Chowdhury et al. 2023, "Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", assumption 4.4: some expert has
// the pattern of a class among its patches with the largest gate, for all samples of the class, and keeps it.
#pragma once

#include <array>

#include "sparsight/analysis/patch_routing_report.h"
#include "sparsight/papers/pmoe/two_layer/patch_sgd.h"

namespace sparsight::pmoe {

struct RoutingMoment {
  int64_t epoch = 0;                         // 0: before training
  std::array<int64_t, 2> expert = {};        // the best for each class
  std::array<double, 2> share = {};          // of the class's samples whose pattern has its largest gate
  std::array<double, 2> smallest_gate = {};  // of the pattern, where it has the largest: at least 1/l
};

// What the model's router does with `data` now.
RoutingMoment routing_moment(PatchCnn& model, const PatchSet& data, int64_t epoch);

// The first epoch from which on the best experts of both classes always have at least `share`; -1 where there is none.
int64_t settled_from(const std::vector<RoutingMoment>& moments, double share);

}  // namespace sparsight::pmoe
