#include "sparsight/analysis/patch_cnn_cost.h"

namespace sparsight {

std::vector<PartCost> patch_cnn_cost(const PatchCnnShape& cnn) {
  const int64_t width = cnn.channels * cnn.patch * cnn.patch;
  Cost expert = linear_cost(width, cnn.filters, false);
  if (cnn.train_output) expert = expert + linear_cost(cnn.filters, cnn.outputs, false);
  if (cnn.experts == 0) return {{"filters", on_units(expert, cnn.patches())}};
  return {{"moe.router", on_units(router_cost(width, cnn.experts), cnn.patches())},
          {"moe.experts", copies(on_units(expert, cnn.taken), cnn.experts)}};
}

}  // namespace sparsight
