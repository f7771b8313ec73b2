// The result of a layer probe as text.
#pragma once

#include <string>

#include "sparsight/analysis/layer_probe.h"

namespace sparsight {

// One line per expert (chosen, kept, importance, load), then the losses and the metrics of the routing. For soft
// routing: the sizes only.
std::string layer_probe_table(const LayerProbe& probe);

}  // namespace sparsight
