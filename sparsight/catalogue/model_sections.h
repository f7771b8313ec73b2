// The sections of a configuration that a trained model is made and used with: all but how it was trained, which nobody
// asks who predicts.
#pragma once

#include "sparsight/core/config.h"

namespace sparsight {

// With all components that are registered by now.
std::vector<Section> model_sections();

// Checks that `sections` have the components that the configuration of a run or checkpoint names. Raises UsageError:
// those that are missing are registered by the program that trained it.
void check_trained_names(const Json& config, const std::vector<Section>& sections);

}  // namespace sparsight
