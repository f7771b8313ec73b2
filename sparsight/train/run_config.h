// All sections of a configuration file, in order: those of catalogue/model_sections.h and those of training alone.
#pragma once

#include "sparsight/core/config.h"

namespace sparsight {

// With all components that are registered by now.
std::vector<Section> config_sections();

}  // namespace sparsight
