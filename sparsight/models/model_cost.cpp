#include "sparsight/models/model_cost.h"

#include "sparsight/core/config.h"
#include "sparsight/models/register_models.h"
#include "sparsight/nn/parameter_memory.h"

namespace sparsight {

std::vector<PartCost> model_cost(const Json& resolved, const ImageShape& image, const CostOptions& options) {
  const MetaParameters without_memory;
  return make_component(models(), resolved, "model", ModelContext{image, read_moe_spec(resolved)})->cost(options);
}

}  // namespace sparsight
