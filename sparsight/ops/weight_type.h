// The names of the types in which weights are stored.
#pragma once

#include <string>
#include <vector>

#include "sparsight/kernels/types.h"

namespace sparsight {

// The names that parse_weight_type knows: "fp32", "bf16", "int8".
const std::vector<std::string>& weight_type_names();
WeightType parse_weight_type(const std::string& name);  // raises UsageError for an unknown name

}  // namespace sparsight
