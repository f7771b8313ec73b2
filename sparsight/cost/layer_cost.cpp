#include "sparsight/cost/layer_cost.h"

#include <algorithm>
#include <cmath>

namespace sparsight {

Cost linear_cost(int64_t inputs, int64_t outputs, bool bias) {
  Cost cost = parameters_cost(checked_product(inputs, outputs));
  cost.multiply_adds = cost.parameters;
  return bias ? cost + parameters_cost(outputs) + elementwise_cost(outputs) : cost;
}

Cost conv_cost(const ConvShape& conv) {
  return linear_cost(checked_product(conv.in, conv.kernel * conv.kernel), conv.out, conv.bias);
}

Cost norm_cost(int64_t width) { return parameters_cost(2 * width) + elementwise_cost(kNormOperations * width); }

Cost attention_cost(const AttentionShape& attention, int64_t tokens, int64_t queries) {
  const int64_t width = attention.width, pairs = checked_product(tokens, queries);
  const Cost keys_and_values = linear_cost(width, 2 * width, attention.qkv_bias);
  const Cost of_query = linear_cost(width, width, attention.qkv_bias) + linear_cost(width, width, true) +
                        elementwise_cost(width);  // the scale of the query
  const Cost mixing{.multiply_adds = 2 * width, .elementwise = kSoftmaxOperations * attention.heads};  // per token pair
  return on_units(keys_and_values, tokens) + on_units(of_query, queries) + on_units(mixing, pairs);
}

Cost lstm_cost(int64_t inputs, int64_t units, int64_t projection) {
  const int64_t recurrent = projection > 0 ? projection : units;
  const Cost gates = linear_cost(inputs + recurrent, 4 * units, false);
  return projection > 0 ? gates + linear_cost(units, projection, false) : gates;
}

Cost mlp_cost(const MlpShape& mlp) {
  const Cost first = linear_cost(mlp.width, mlp.hidden, mlp.bias),
             middle = linear_cost(mlp.hidden, mlp.hidden, mlp.bias);
  const int64_t hidden_operations = mlp.activation_operations + (mlp.gated ? 1 : 0);  // gates are multiplied
  return copies(first, mlp.gated ? 2 : 1) + copies(middle, mlp.depth - 1) +
         linear_cost(mlp.hidden, mlp.outputs > 0 ? mlp.outputs : mlp.width, mlp.bias) +
         elementwise_cost(checked_product(mlp.depth * hidden_operations, mlp.hidden));
}

Cost router_cost(int64_t width, int64_t experts, int64_t maps) {
  return copies(linear_cost(width, experts, false), maps) + elementwise_cost(kSoftmaxOperations * experts);
}

Cost hierarchical_router_cost(int64_t width, int64_t experts, int64_t groups, int64_t chosen_groups, int64_t maps) {
  const Cost secondary = router_cost(width, experts / groups, maps);
  return router_cost(width, groups, maps) + experts_cost(secondary, groups, chosen_groups);
}

Cost experts_cost(const Cost& expert, int64_t experts, int64_t chosen) {
  return experts_cost(expert, {experts, 1, static_cast<double>(chosen), static_cast<double>(chosen), chosen});
}

Cost experts_cost(const Cost& expert, const ExpertUse& use) {
  Cost cost = on_average(expert, use.rows);
  cost.parameters = checked_product(expert.parameters, use.experts);
  cost.active_parameters = std::min(
      cost.parameters, static_cast<int64_t>(std::llround(static_cast<double>(expert.active_parameters) * use.active)));
  cost.weight_bytes = checked_product(expert.weight_bytes, std::min(use.experts, use.touched));
  return cost;
}

}  // namespace sparsight
