#include "sparsight/moe/router_cost.h"

namespace sparsight {

RouterCost token_choice_cost(const Cost& of_token, int64_t k, const TokenLayout& layout) {
  const auto choices = static_cast<double>(k);
  return {on_units(of_token, layout.per_image), choices * static_cast<double>(layout.per_image), choices, {}, k};
}

RouterCost varying_choice_cost(const Cost& of_token, double mean_k, const TokenLayout& layout) {
  RouterCost cost = token_choice_cost(of_token, 1, layout);
  cost.rows = mean_k * static_cast<double>(layout.per_image);
  cost.active = mean_k;
  cost.per_token = 0;
  cost.varying = true;
  return cost;
}

RouterCost expert_choice_cost(const Cost& of_token, double rows, int64_t experts, const TokenLayout& layout) {
  const auto tokens = static_cast<double>(layout.per_image);
  return {on_units(of_token, layout.per_image), rows, tokens > 0 ? rows / tokens : 0, experts};
}

}  // namespace sparsight
