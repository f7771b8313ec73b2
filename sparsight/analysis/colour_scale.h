// Colours of numbers.
#pragma once

#include "sparsight/analysis/expert_colours.h"

namespace sparsight {

// viridis (van der Walt and Smith, 2015) in seven colours, interpolated: dark for 0, bright for 1.
Rgb viridis(double share);

}  // namespace sparsight
