// `sparsight train`
#pragma once

#include <string>

#include "cli/config_arguments.h"

namespace sparsight::cli {

struct TrainArguments {
  ConfigArguments config;
  std::string out, resume, init_from, on_nan;
  int64_t processes = 0, max_restarts = 3;
  bool overwrite = false, allow_changed_config = false, allow_missing = false;
};

void run_train(const TrainArguments& arguments);

}  // namespace sparsight::cli
