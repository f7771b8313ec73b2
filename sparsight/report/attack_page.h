// An attack as one self-contained HTML page: its tables, and a few images before and after, with the perturbation
// magnified and the experts of their patches.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

struct AttackExample {
  std::string id, label, prediction, stage;     // names of classes, of the attack that fooled it
  double norm = 0;                              // of the perturbation
  double magnification = 1;                     // of the perturbation in `change`, around grey
  std::string clean, attacked, change;          // PNG files
  std::string clean_experts, attacked_experts;  // PNG files of patches in the colours of their experts; "" without any
};

// result: result.json. A pure function.
std::string attack_page(const Json& result, const std::vector<AttackExample>& examples);

}  // namespace sparsight
