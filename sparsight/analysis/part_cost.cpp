#include "sparsight/analysis/part_cost.h"

namespace sparsight {

Cost total(const std::vector<PartCost>& parts) {
  Cost sum;
  for (const PartCost& part : parts) sum = sum + part.cost;
  return sum;
}

}  // namespace sparsight
