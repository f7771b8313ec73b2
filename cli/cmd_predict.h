// `sparsight predict`
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight::cli {

struct PredictArguments {
  std::string run, checkpoint, weights, routing, save_routing;
  std::vector<std::string> images, overrides;
  int64_t top = 3;
  bool json = false;
};

void run_predict(const PredictArguments& arguments);

}  // namespace sparsight::cli
