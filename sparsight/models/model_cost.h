// The cost of a configuration's model, part by part, from its settings alone: the model is built on the meta device
// (MetaParameters of nn/parameter_memory.h).
#pragma once

#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/cost/ranks_cost.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

// resolved: with the section [model] and those of read_moe_spec. Raises UsageError for settings and sizes that the
// model would reject.
std::vector<PartCost> model_cost(const Json& resolved, const ImageShape& image, const CostOptions& options = {});

// The rows that its MoE layers pass to their experts, in the order of the model.
std::vector<ExpertExchange> expert_exchanges(const Json& resolved, const ImageShape& image);

}  // namespace sparsight
