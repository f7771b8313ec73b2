// A trial of an MoE layer as text.
#pragma once

#include <string>

#include "sparsight/analysis/moe_trial.h"

namespace sparsight {

// One line per expert (chosen, kept, importance, load), then the losses and the metrics of the routing. For a router
// that mixes tokens: the sizes only.
std::string moe_trial_table(const MoeTrial& trial);

}  // namespace sparsight
