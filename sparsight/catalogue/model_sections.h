// The sections of a configuration that are needed to build and use a trained model: all except how it was trained,
// which does not matter for prediction.
#pragma once

#include "sparsight/core/config.h"

namespace sparsight {

// With all components registered so far.
std::vector<Section> model_sections();

}  // namespace sparsight
