// `sparsight sweep`
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/config_arguments.h"
#include "cli/jobs_arguments.h"

namespace sparsight::cli {

struct SweepArguments {
  ConfigArguments config;
  std::vector<std::string> grid;
  int64_t random = 0;   // settings that are drawn; 0: all
  int64_t halving = 0;  // the share of settings that goes on is 1 / halving; 0: all are trained to the end
  int64_t seeds = 1;
  std::string format = "text";
  JobsArguments jobs;
};

void run_sweep(const SweepArguments& arguments);

}  // namespace sparsight::cli
