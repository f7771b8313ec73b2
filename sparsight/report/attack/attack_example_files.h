// The pictures of an attack as files, which the report of a run shows again: examples/examples.json, and for each image
// NNN_clean.png, NNN_attacked.png, NNN_change.png and, of a model with MoE layers, NNN_clean_experts.png and
// NNN_attacked_experts.png.
#pragma once

#include <string>
#include <vector>

#include "sparsight/report/attack/attack_page.h"

namespace sparsight {

// folder: of the attack. Nothing for no examples.
void write_attack_examples(const std::string& folder, const std::vector<AttackExample>& examples);

// Those in the folder `name` of the run folder `run`, such as "attacks/pgd_linf_4_255"; none where there are no
// pictures, as in attacks of earlier versions. What is missing or damaged becomes a warning.
std::vector<AttackExample> read_attack_examples(const std::string& run, const std::string& name,
                                                std::vector<std::string>& warnings);

}  // namespace sparsight
