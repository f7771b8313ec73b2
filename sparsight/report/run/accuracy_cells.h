// The "cells" of an evaluation, its accuracy by class and domain, as tables and pages show them. Schema:
// docs/file_formats.md.
#pragma once

#include <string>
#include <vector>

#include "sparsight/report/run/run_metrics.h"

namespace sparsight {

// The cells of an "eval" record in order; empty if it has none.
std::vector<Json> accuracy_cells(const Json& eval);

// The values of `key` ("class", "domain") in order of first appearance.
std::vector<std::string> distinct_strings(const std::vector<Json>& cells, const std::string& key);

// At most `count` cells, lowest accuracy first; ties keep their order.
std::vector<Json> worst_cells(const std::vector<Json>& cells, size_t count);

}  // namespace sparsight
