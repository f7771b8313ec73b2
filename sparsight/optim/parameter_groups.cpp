#include "sparsight/optim/parameter_groups.h"

#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

ParameterGroup group_from(const Json& table, const std::string& where) {
  ParameterGroup group;
  double weight_decay = 0;
  OptionSet set;
  set.strings("parameters", &group.parameters, "dotted parts of parameter names");
  set.real("lr_factor", &group.lr_factor, {0, 1e6}, "factor of the learning rate");
  set.real("weight_decay", &weight_decay, {0, 1e6}, "weight decay instead of the optimiser's");
  assign(set, table, where);
  if (group.parameters.empty())
    fail_usage(where, " names no parameters; add them, for example parameters = [\"router\"]");
  if (table.contains("weight_decay")) group.weight_decay = weight_decay;
  return group;
}

// What an entry of a group can match: single dotted parts of the names, and their prefixes up to each dot.
std::vector<std::string> possible_parts(const std::vector<OptimizedParameter>& parameters) {
  std::vector<std::string> all;
  for (const OptimizedParameter& parameter : parameters) {
    const std::string& name = parameter.name;
    size_t first = 0;
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      all.push_back(name.substr(first, dot - first));
      all.push_back(name.substr(0, dot));
      first = dot + 1;
    }
    all.push_back(name.substr(first));
    all.push_back(name);
  }
  return all;
}

}  // namespace

bool has_name_part(const std::string& name, const std::string& part) {
  return ("." + name + ".").find("." + part + ".") != std::string::npos;
}

std::vector<ParameterGroup> parameter_groups_from(const Json& tables, const std::string& where) {
  std::vector<ParameterGroup> groups;
  for (const Json& table : tables) groups.push_back(group_from(table, cat(where, "[", groups.size(), "]")));
  return groups;
}

void apply_groups(const std::vector<ParameterGroup>& groups, const std::string& where,
                  std::vector<OptimizedParameter>& parameters) {
  std::vector<size_t> parameter_group(parameters.size(), groups.size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (const std::string& part : groups[g].parameters) {
      bool found = false;
      for (size_t i = 0; i < parameters.size(); ++i) {
        OptimizedParameter& parameter = parameters[i];
        if (!has_name_part(parameter.name, part)) continue;
        found = true;
        if (parameter_group[i] < g)
          fail_usage(where, "[", parameter_group[i], "] and [", g, "] both name ", parameter.name,
                     "; keep each parameter in one group");
        parameter_group[i] = g;
        parameter.lr_factor = groups[g].lr_factor;
        parameter.weight_decay = groups[g].weight_decay;
      }
      if (!found)
        fail_usage(where, "[", g, "] names \"", printable(part), "\", which matches no trained parameter",
                   did_you_mean(nearest_name(part, possible_parts(parameters))));
    }
}

}  // namespace sparsight
