// `sparsight predict`
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/launch_arguments.h"
#include "sparsight/infer/bare_options.h"

namespace sparsight::cli {

struct PredictArguments {
  std::string run, checkpoint, weights, routing, save_routing;
  std::vector<std::string> images, overrides;
  int64_t top = 3;
  bool json = false, pack_cache = false;
  BareOptions bare;  // for a file of weights alone
  LaunchArguments launch;
};

void run_predict(const PredictArguments& arguments);

}  // namespace sparsight::cli
