#include "sparsight/ops/weight_type.h"

#include "sparsight/core/nearest_name.h"

namespace sparsight {

const std::vector<std::string>& weight_type_names() {
  static const std::vector<std::string> names{"fp32", "bf16", "int8"};  // in the order of the enumeration
  return names;
}

WeightType parse_weight_type(const std::string& name) {
  return static_cast<WeightType>(find_position(name, weight_type_names(), "weight type"));
}

}  // namespace sparsight
