// The tables of an attack as CSV files: pure functions of result.json (docs/attacks.md).
#pragma once

#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

// A text field, quoted where it has to be; control characters are escaped.
std::string attack_csv_text(const std::string& text);
// A number with 9 digits; "" for anything else, such as null.
std::string attack_csv_number(const Json& value);

// A row for each attack of `stages`.
std::string attack_stages_csv(const Json& stages);
// A row for each MoE layer of `routing`; the load of its experts is one field, separated by spaces.
std::string attack_routing_csv(const Json& routing);

}  // namespace sparsight
