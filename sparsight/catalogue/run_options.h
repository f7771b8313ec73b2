// Section [run]: seed and threads, for every verb that reads a configuration.
#pragma once

#include "sparsight/core/options.h"

namespace sparsight {

struct RunOptions {
  int64_t seed = 0;
  int64_t threads = 0;
  void declare(OptionSet& set);
};

// Sets the number of compute threads of the process.
void apply_threads(const RunOptions& options);

}  // namespace sparsight
