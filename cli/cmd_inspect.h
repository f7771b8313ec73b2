// `sparsight inspect`
#pragma once

#include <string>

namespace sparsight::cli {

struct InspectArguments {
  std::string file;
  bool json = false;
};

void run_inspect(const InspectArguments& arguments);

}  // namespace sparsight::cli
