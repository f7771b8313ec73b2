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

// A Markdown page with its generated tables updated. Such a table is enclosed by the lines "<!-- table: router -->",
// which names a section, and "<!-- end of table -->". It has a row for each component that the section can name, or
// for each setting of a plain section. "<!-- settings: router -->" begins one with a row for each setting of the
// section's components. Raises UsageError for an unknown section and for a table without an end line.
std::string with_tables(const std::string& page, const std::vector<Section>& sections);

}  // namespace sparsight
