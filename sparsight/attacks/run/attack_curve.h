// `sparsight attack --eps 1/255,2/255,4/255`: an attack for each epsilon in a folder of its own, which a killed run
// resumes like any attack, and the curve of robust accuracy over epsilon.
//
//   curve.json, curve.csv, curve.html    written last (docs/attacks.md)
//   eps_1_255/, eps_2_255/, ...          attacks (attack_folder.h)
#pragma once

#include <string>
#include <vector>

#include "sparsight/attacks/run/run_attack.h"
#include "sparsight/core/options.h"

namespace sparsight {

// The entries of "1/255,2/255". Raises UsageError for an empty entry.
std::vector<std::string> listed_epsilons(const std::string& text);

// curve.json of request.epsilon, a list of at least two, by ascending epsilon. Raises what run_attack() does, and
// UsageError for an epsilon that is given twice. on_result: gets it before its files are written.
Json run_attack_curve(const AttackRequest& request, const OnAttackResult& on_result = {});
// The same over the ranks of a group, as run_attack().
Json run_attack_curve(const AttackRequest& request, const OnAttackResult& on_result, dist::Group& group);

}  // namespace sparsight
