// `sparsight train`
#pragma once

#include <string>

#include "cli/config_arguments.h"
#include "cli/launch_arguments.h"

namespace sparsight::cli {

struct TrainArguments {
  ConfigArguments config;
  std::string out, resume, init_from, on_nan;
  LaunchArguments launch;
  bool overwrite = false, allow_changed_config = false, allow_missing = false;
};

void run_train(const TrainArguments& arguments);

}  // namespace sparsight::cli
