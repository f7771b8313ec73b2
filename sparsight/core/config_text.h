// Configurations as text for people: where each value came from, and the reference of every setting.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/config.h"

namespace sparsight {

// TOML of a resolved configuration, each line ending with a comment that says where its value came from.
std::string toml_with_origins(const Json& resolved, const Config& config);

// Markdown tables of every setting of `sections`: type, default, allowed values, meaning.
std::string configuration_reference(const std::vector<Section>& sections);

}  // namespace sparsight
