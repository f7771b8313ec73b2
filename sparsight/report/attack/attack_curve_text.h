// Robust accuracy over epsilon as text: pure functions of curve.json (docs/attacks.md).
#pragma once

#include <string>

#include "sparsight/core/options.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

// A row for the clean images and for each epsilon: robust accuracy with its interval, after each attack of a cascade,
// success rate, and the change of the routing, mean over MoE layers, beside chance.
Rows attack_curve_rows(const Json& curve);
// A row for each epsilon and each of its attacks: robust images, accuracy and interval, costs.
std::string attack_curve_csv(const Json& curve);
// All of it with warnings and notes. Ends with a newline.
std::string attack_curve_text(const Json& curve);
// The warnings of the curve and of its attacks, then its notes.
std::vector<std::string> attack_curve_notices(const Json& curve);

}  // namespace sparsight
