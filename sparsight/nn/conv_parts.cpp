#include "sparsight/nn/conv_parts.h"

namespace sparsight {

PartCost norm_part(const std::string& part, const BatchNorm& norm, MapSize map) {
  const int64_t channels = norm->tensors.weight.size(0);
  return {part, on_units(norm->cost() + elementwise_cost(channels), map.positions()), map_text(channels, map)};
}

PartCost conv_part(const std::string& part, const Conv& conv, MapSize& map) {
  const Cost cost = conv->cost(map);
  map = conv->output(map);
  return {part, cost, map_text(conv->weight.size(0), map)};
}

}  // namespace sparsight
