// `sparsight config`
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/config_arguments.h"

namespace sparsight::cli {

struct ConfigCostArguments {
  ConfigArguments config;
  std::vector<int64_t> image{3, 64, 64};  // channels, height, width
  int64_t classes = 2;
  std::string flops = "multiply_adds";            // a name of cost_conventions()
  std::string ranks;                              // or "": a step on several ranks is not asked for
  std::vector<std::string> networks;              // names of networks() in cost/ranks_cost.h; {}: all
  double flops_per_second = 0, step_seconds = 0;  // of a rank; 0: not given
  std::string format = "text";                    // or "json"
};

void run_config_show(const ConfigArguments& arguments);
void run_config_check(const ConfigArguments& arguments);
void run_config_cost(const ConfigCostArguments& arguments);
// What a step takes on several ranks.
void run_ranks_cost(const ConfigCostArguments& arguments);
void run_config_catalogue();
void run_config_docs(const std::vector<std::string>& pages);

}  // namespace sparsight::cli
