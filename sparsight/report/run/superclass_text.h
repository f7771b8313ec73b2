// Super-classes and guided routers as tables. Pure functions of the records of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/core/json_fields.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

// {"super-class", "name", "classes", "members"}: a row for each; of many members the first ones. The header alone
// without super-classes, and where the lists do not match. super_class_of: [K]; names: [G].
Rows superclass_rows(const std::vector<int64_t>& super_class_of, const std::vector<std::string>& names,
                     const std::vector<std::string>& classes);

// {"MoE layer", "entropy of usage", "experts per image", "router accuracy"} of the entries of `layers` in an evaluation
// that have one of these; the last column only where routers are guided. The header alone without such an entry.
Rows router_measure_rows(const Json& layers);

// "weights touched per image: 5,719,336 parameters (22.88 MB in fp32), at most 6,311,080"; "" where an evaluation has
// not measured it.
std::string touched_text(const Json& eval);

// "3 fish": experts by the super-classes that they are for; long names are cut. {} without names.
std::vector<std::string> expert_names(const std::vector<std::string>& super_classes);

}  // namespace sparsight
