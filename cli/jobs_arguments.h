// The arguments of commands that do many runs in one folder: dg sweep, dg ablate, sweep.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

#include "cli/launch_arguments.h"

namespace sparsight::cli {

struct JobsArguments {
  std::string out, task, slurm;
  std::int64_t tasks = 100;  // of the array that `slurm` describes
  bool plan = false;
  LaunchArguments launch;

  void declare(CLI::App& verb);
};

}  // namespace sparsight::cli
