#include "cli/work/key_values.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/toml.h"

namespace sparsight::cli {

Json key_values(const std::vector<std::string>& assignments) {
  Json table = Json::object();
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
      fail_usage("--set takes key=value (for example side=64), got \"", assignment, "\"");
    table[assignment.substr(0, equals)] = parse_toml_value(assignment.substr(equals + 1));
  }
  return table;
}

}  // namespace sparsight::cli
