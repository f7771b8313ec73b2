// Parameter groups: parameters with their own learning rate or weight decay, from [train] param_groups.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/optim/optimizer.h"

namespace sparsight {

struct ParameterGroup {
  std::vector<std::string>
      parameters;        // dotted parts of names: "router" and "blocks.1" match "blocks.1.mlp.router.weight"
  double lr_factor = 1;  // multiplies the learning rate
  std::optional<double> weight_decay;  // instead of the optimiser's
};

// From [{"parameters": ["router"], "lr_factor": 0.1, "weight_decay": 0}, ...]; the last two are optional. Raises
// UsageError that begins with `where` ("train.param_groups") for any other table.
std::vector<ParameterGroup> parameter_groups_from(const Json& tables, const std::string& where);

// Gives each parameter the settings of the group that matches it. Parameters excluded from weight decay stay excluded.
// Raises UsageError where an entry matches no parameter, with the nearest name, or two groups match the same one.
void apply_groups(const std::vector<ParameterGroup>& groups, const std::string& where,
                  std::vector<OptimizedParameter>& parameters);

// Whether `part` is one or more dotted parts of the name: "blocks.1" matches "blocks.1.norm" but not "blocks.10.norm".
bool has_name_part(const std::string& name, const std::string& part);

}  // namespace sparsight
