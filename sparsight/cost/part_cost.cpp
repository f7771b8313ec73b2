#include "sparsight/cost/part_cost.h"

namespace sparsight {

std::string map_text(int64_t channels, MapSize map) {
  return std::to_string(channels) + "x" + std::to_string(map.height) + "x" + std::to_string(map.width);
}

void append(std::vector<PartCost>& parts, const std::vector<PartCost>& more) {
  parts.insert(parts.end(), more.begin(), more.end());
}

Cost total(const std::vector<PartCost>& parts) {
  Cost sum;
  for (const PartCost& part : parts) sum = sum + part.cost;
  return sum;
}

}  // namespace sparsight
