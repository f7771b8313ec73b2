// The sections of a configuration that are needed to build and use a trained model: all except how it was trained,
// which does not matter for prediction.
#pragma once

#include "sparsight/core/config.h"

namespace sparsight {

// The sections with all components registered so far.
std::vector<Section> model_sections();

// These sections of `config`, whose others are ignored, with defaults for settings that it does not name. origin: what
// errors call it.
Json resolved_model(const Json& config, const std::string& origin);

// Checks that `sections` have the components that the configuration of a run or checkpoint names. Raises UsageError:
// those that are missing are registered by the program that trained it.
void check_trained_names(const Json& config, const std::vector<Section>& sections);

}  // namespace sparsight
