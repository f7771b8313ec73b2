// `sparsight demo`
#pragma once

#include <string>
#include <vector>

namespace sparsight::cli {

struct DemoArguments {
  std::string out = "runs/demo";
  std::vector<std::string> overrides;
  bool with_dense = false, overwrite = false, print_config = false;
};

void run_demo(const DemoArguments& arguments);

}  // namespace sparsight::cli
