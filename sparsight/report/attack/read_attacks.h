// The attacks in a run folder, as its report shows them: RUN/attacks/NAME with the result of one attack, or with a
// curve over several epsilons (docs/attacks.md).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/report/attack/attack_page.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

struct ShownAttack {
  std::string name;  // of its folder
  Json result;       // result.json; of a curve that of its largest epsilon with pictures; or null
  Json curve;        // curve.json, or null
  std::vector<AttackExample> examples;
};

// The finished ones in the order of their names, at most 32. What is damaged or too much becomes a warning.
std::vector<ShownAttack> read_attacks(const std::string& run, std::vector<std::string>& warnings);

// result.json of an AutoAttack. path: its folder, or a run folder with one in attacks/. Raises Error if there is none
// or more than one, which it names, and for a damaged file.
Json read_autoattack(const std::string& path);

// A row for each attack, and for each epsilon of a curve, with its target where any has one; empty without any.
Rows attack_overview_rows(const std::vector<ShownAttack>& attacks);

}  // namespace sparsight
