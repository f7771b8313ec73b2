// What the model of a configuration costs, part by part, from its settings alone: the model is built without memory
// (MetaParameters of nn/parameter_memory.h) and asked.
#pragma once

#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

// resolved: with the section [model] and those of read_moe_spec. Raises UsageError where the model would for settings
// and sizes that do not fit.
std::vector<PartCost> model_cost(const Json& resolved, const ImageShape& image, const CostOptions& options = {});

}  // namespace sparsight
