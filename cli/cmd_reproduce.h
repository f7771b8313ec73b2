// `sparsight reproduce`
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/launch_arguments.h"

namespace sparsight::cli {

struct ReproduceArguments {
  std::string what, figure, scale = "small", data, run, python, slurm, task, fingerprint;
  std::vector<std::string> overrides;
  int64_t jobs = 0, threads = 1, worker = 0, tasks = 1000;
  bool synthetic = false, json = false, plan = false;
  LaunchArguments launch;
};

void run_reproduce(const ReproduceArguments& arguments);

}  // namespace sparsight::cli
