// Which experts of a layer stay when others are removed. Pure functions of what was measured. Letters: moe/axes.md.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsight {

// load: [E] assignments before capacity. Returns [E]: those that some token chose.
std::vector<bool> used_experts(const std::vector<double>& load);

// Those whose share of all assignments is at least `share` (0 to 1). Without any assignments no share is above 0.
std::vector<bool> experts_from_share(const std::vector<double>& load, double share);

// The `count` with the largest score, or all where there are no more; among equal ones those with the larger
// `second`, then the first ones. score, second: [E].
std::vector<bool> best_experts(const std::vector<double>& score, const std::vector<double>& second, int64_t count);

}  // namespace sparsight
