// What the model of a configuration costs, part by part, from its settings alone: nothing is built.
#pragma once

#include <vector>

#include "sparsight/analysis/part_cost.h"
#include "sparsight/core/options.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

// resolved: with the sections [model], [moe], [experts] and [router]. Counted are wide_resnet, dense or with experts
// "norm_conv", and patch_cnn with experts "conv" whose kernel is the patch; both with router "patch_choice". Raises
// UsageError for any other.
std::vector<PartCost> model_cost(const Json& resolved, const ImageShape& image);

}  // namespace sparsight
