// What `sparsight attack` says on a terminal: pure functions of result.json (docs/attacks.md).
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

// What was attacked and how: epsilon with its units, norm, attack, capacity, seed, batch, precision, fingerprints.
std::vector<std::string> attack_lines(const Json& result);
// What a targeted attack moves images to: "class 3 (cat)", "the least likely wrong class of each image"; "" for an
// untargeted one.
std::string attack_target_text(const Json& result);
// A row for the clean images and for each attack: robust accuracy with its interval, the share at the target of a
// targeted attack, images gained, costs.
Rows attack_rows(const Json& result);
// "success rate 91.20 % (95 % CI: ...), 31 of 34", and the other rates, losses, saved images and counted gradients.
std::vector<std::string> attack_findings(const Json& result);
// Each attack with all its settings: "apgd-ce: apgd, steps 100, restarts 1, ..."
std::vector<std::string> attack_settings_lines(const Json& result);
// What its rates are of: "accuracy", or of multi-label data "precision@1".
std::string attack_score_name(const Json& result);
// "5.81 to 14.20": a share's interval in percent, "-" without one.
std::string attack_interval_text(const Json& share);
// All of it with warnings and notes. Ends with a newline.
std::string attack_text(const Json& result);

}  // namespace sparsight
