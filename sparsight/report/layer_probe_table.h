// A probe of an MoE layer as text.
#pragma once

#include <string>

#include "sparsight/analysis/layer_probe.h"

namespace sparsight {

// One line per expert (chosen, kept, importance, load), then the losses and the metrics of the routing. For a router
// that mixes tokens: the sizes only.
std::string layer_probe_table(const LayerProbe& probe);

}  // namespace sparsight
