// All sections of a configuration file, in order: those of catalogue/model_sections.h and those of training alone.
#pragma once

#include "sparsight/core/config.h"

namespace sparsight {

const std::vector<Section>& config_sections();

}  // namespace sparsight
