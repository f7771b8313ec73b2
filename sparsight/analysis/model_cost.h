// What the model of a configuration costs, part by part, from its settings alone: the model is not built.
#pragma once

#include <vector>

#include "sparsight/analysis/part_cost.h"
#include "sparsight/core/options.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

// resolved: with the section [model] and those of read_moe_spec. Counted are
//   vit          dense or with MoE layers that moe_cost counts
//   patch_cnn    the same, or without an MoE layer
//   wide_resnet  dense or with experts "norm_conv", router "patch_choice"
// Raises UsageError for any other, and where the model would for sizes that do not fit.
std::vector<PartCost> model_cost(const Json& resolved, const ImageShape& image);

}  // namespace sparsight
