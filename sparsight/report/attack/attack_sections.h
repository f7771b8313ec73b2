// The attacks of a run in its report.
#pragma once

#include <vector>

#include "sparsight/report/attack/read_attacks.h"
#include "sparsight/report/page.h"

namespace sparsight {

// A table of all, then a section for each: tables, curves, fooled images before and after with the experts of their
// patches, settings. Nothing without attacks.
void add_attacks(Page& page, const std::vector<ShownAttack>& attacks);

}  // namespace sparsight
