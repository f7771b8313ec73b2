// `sparsight moe`
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/config_arguments.h"

namespace sparsight::cli {

struct MoeArguments {
  std::string input, out, routing, save_routing, mode = "eval";
  std::optional<std::string> seed;
  ConfigArguments config;
  std::vector<int64_t> grid;
  int64_t prefix = 0;
  bool float64 = false;
};

void run_moe(const MoeArguments& arguments);

}  // namespace sparsight::cli
