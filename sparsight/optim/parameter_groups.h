// Parameter groups: parameters whose learning rate or weight decay is not that of the others, as [train] param_groups
// lists them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/optim/optimizer.h"

namespace sparsight {

struct ParameterGroup {
  std::vector<std::string>
      parameters;        // whole parts of names: "router" and "blocks.1" name "blocks.1.mlp.router.weight"
  double lr_factor = 1;  // of the learning rate
  std::optional<double> weight_decay;  // instead of the optimiser's
};

// From [{"parameters": ["router"], "lr_factor": 0.1, "weight_decay": 0}, ...]; the last two may be left out. Raises
// UsageError that begins with `where` ("train.param_groups") for any other table.
std::vector<ParameterGroup> parameter_groups_from(const Json& tables, const std::string& where);

// Gives each parameter the settings of the group that names it. Parameters that are excluded from weight decay stay so.
// Raises UsageError where a group names no parameter, with the nearest name, or two groups name the same.
void apply_groups(const std::vector<ParameterGroup>& groups, const std::string& where,
                  std::vector<OptimizedParameter>& parameters);

// Whether `part` is one or more whole parts of the name: "blocks.1" of "blocks.1.norm", but not of "blocks.10.norm".
bool has_name_part(const std::string& name, const std::string& part);

}  // namespace sparsight
