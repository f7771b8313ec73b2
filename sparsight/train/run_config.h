// All sections of a configuration file, in order: those of catalogue/model_sections.h and those for training only.
#pragma once

#include "sparsight/core/config.h"

namespace sparsight {

// Includes all components registered so far.
std::vector<Section> config_sections();

}  // namespace sparsight
