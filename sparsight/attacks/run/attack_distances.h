// How small the perturbations are that an attack on distances, FAB, finds.
#pragma once

#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

// {"of", "found", "beyond_epsilon", "quantiles": {"p5", "p25", "median", "p75", "p95"}} of AttackResult::distance, one
// for each image that the success rate counts (attack_success.h): over all of these, by the nearest rank, where an
// image without one counts as infinitely far. A quantile that is infinite, or of no images, is null. beyond_epsilon:
// whether distances beyond epsilon are among them, which otherwise count as infinite.
Json distances_json(std::vector<double> distances, bool beyond_epsilon);

}  // namespace sparsight
