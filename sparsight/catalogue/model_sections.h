// The sections of a configuration that are needed to build and use a trained model: all except how it was trained,
// which does not matter for prediction.
#pragma once

#include "sparsight/core/config.h"

namespace sparsight {

// With all components registered so far.
std::vector<Section> model_sections();

// What `config` says in these sections, without how the model was trained.
Json model_tables(const Json& config);

// Checks that `sections` have the components that the configuration of a run or checkpoint names. Raises UsageError:
// those that are missing are registered by the program that trained it.
void check_trained_names(const Json& config, const std::vector<Section>& sections);

}  // namespace sparsight
