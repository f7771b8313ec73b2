// How many experts the tokens of a layer have, for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/json_fields.h"

namespace sparsight {

// The fields of RoutingStats; nothing is shown of older logs that lack the mean.
struct ExpertsPerToken {
  std::optional<double> chosen, kept;
  std::vector<double> tokens_with, tokens_with_kept;  // tokens with 0, 1, ... experts; the second empty: as the first
};

// "2.00" if every token has 2 experts; "1.50 (1: 50 %, 2: 50 %)" if half of them have one; "2.00, kept 1.50 (1: 50 %,
// 2: 50 %)" if capacity drops some; "-" without a mean. Of more than 8 numbers the most frequent ones.
std::string experts_per_token_text(const ExpertsPerToken& experts);
// experts_per_token_text() of an entry of `layers` in metrics.jsonl or explain.json.
std::string layer_experts_per_token(const Json& layer);

}  // namespace sparsight
