// `sparsight watch`
#pragma once

#include <string>

namespace sparsight::cli {

struct WatchArguments {
  std::string run;
  double every = 2;  // seconds
  bool once = false;
};

void run_watch(const WatchArguments& arguments);

}  // namespace sparsight::cli
