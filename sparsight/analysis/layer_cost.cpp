#include "sparsight/analysis/layer_cost.h"

namespace sparsight {

Cost linear_cost(int64_t inputs, int64_t outputs, bool bias) {
  return {inputs * outputs, inputs * outputs + (bias ? outputs : 0)};
}

Cost conv_cost(const ConvShape& conv) { return linear_cost(conv.in * conv.kernel * conv.kernel, conv.out, conv.bias); }

Cost norm_cost(int64_t width) { return {0, 2 * width}; }

Cost lstm_cost(int64_t inputs, int64_t units, int64_t projection) {
  const int64_t recurrent = projection > 0 ? projection : units;
  const Cost gates = linear_cost(inputs + recurrent, 4 * units, false);
  return projection > 0 ? gates + linear_cost(units, projection, false) : gates;
}

Cost mlp_cost(const MlpShape& mlp) {
  const Cost first = linear_cost(mlp.width, mlp.hidden, mlp.bias),
             middle = linear_cost(mlp.hidden, mlp.hidden, mlp.bias);
  return copies(first, mlp.gated ? 2 : 1) + copies(middle, mlp.depth - 1) +
         linear_cost(mlp.hidden, mlp.outputs > 0 ? mlp.outputs : mlp.width, mlp.bias);
}

Cost router_cost(int64_t width, int64_t experts, int64_t maps) {
  return copies(linear_cost(width, experts, false), maps);
}

Cost hierarchical_router_cost(int64_t width, int64_t experts, int64_t groups, int64_t chosen_groups, int64_t maps) {
  const Cost secondary = router_cost(width, experts / groups, maps);
  return router_cost(width, groups, maps) + experts_cost(secondary, groups, chosen_groups);
}

Cost experts_cost(Cost expert, int64_t experts, int64_t chosen) {
  return {expert.multiply_adds * chosen, expert.parameters * experts};
}

}  // namespace sparsight
