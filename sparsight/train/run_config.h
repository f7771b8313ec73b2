// The sections of a configuration file, in order.
#pragma once

#include "sparsight/core/config.h"

namespace sparsight {

const std::vector<Section>& config_sections();

}  // namespace sparsight
