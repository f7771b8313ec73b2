// `sparsight compare`
#pragma once

#include <string>

namespace sparsight::cli {

struct CompareArguments {
  std::string a, b;
  bool json = false;
};

void run_compare(const CompareArguments& arguments);

}  // namespace sparsight::cli
