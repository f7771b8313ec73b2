// The routing of clean and attacked images as text: pure functions of result.json (docs/attacks.md), whose "routing" is
// the list of AttackedRouting::layers(); results of earlier versions have none.
#pragma once

#include <string>

#include "sparsight/core/options.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

// A row for each MoE layer: how much of its routing changed, against random choices, and the use of its experts before
// and after. Empty without MoE layers.
Rows attack_routing_rows(const Json& result);
// How to read them; "" without MoE layers.
std::string attack_routing_note(const Json& result);

}  // namespace sparsight
