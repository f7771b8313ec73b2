// The sections of a configuration that a trained model is made and used with: all but how it was trained, which nobody
// asks who predicts.
#pragma once

#include "sparsight/core/config.h"

namespace sparsight {

// With all components that are registered by now.
std::vector<Section> model_sections();

}  // namespace sparsight
