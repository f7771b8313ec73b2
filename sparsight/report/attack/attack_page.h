// An attack as one self-contained HTML page: its tables, and a few images before and after, with the perturbation
// magnified and the experts of their patches.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

struct Page;

struct AttackExample {
  std::string id, label, prediction, stage;     // names of classes, of the attack that fooled it
  double norm = 0;                              // of the perturbation
  double magnification = 1;                     // of the perturbation in `change`, around grey
  std::string clean, attacked, change;          // PNG files
  std::string clean_experts, attacked_experts;  // PNG files of patches in the colours of their experts; "" without any
};

// Parts of pages that show an attack, as HTML; result: result.json. Pure functions.
std::string attack_tables_html(const Json& result);  // the attacks, the routing and the findings
std::string attack_examples_html(const std::vector<AttackExample>& examples);
std::string attack_settings_html(const Json& result);
std::vector<std::string> attack_notices(const Json& result);  // warnings, then notes; plain text

// The HTML page of an attack's result or of its curve, around `page`. notices: plain text.
std::string framed_attack_page(const Page& page, const Json& of, const std::vector<std::string>& notices);

std::string attack_page(const Json& result, const std::vector<AttackExample>& examples);

}  // namespace sparsight
