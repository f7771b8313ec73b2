// Robust accuracy over epsilon as charts and as one self-contained HTML page: pure functions of curve.json.
#pragma once

#include <string>
#include <vector>

#include "sparsight/report/charts/charts.h"

namespace sparsight {

// Robust accuracy after each attack with its interval, and the change of each MoE layer's routing, over epsilon.
std::vector<Chart> attack_curve_charts(const Json& curve);

std::string attack_curve_page(const Json& curve);

}  // namespace sparsight
