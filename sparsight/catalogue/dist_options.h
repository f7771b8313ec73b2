// Section [dist]: how the processes that train a model share it out.
#pragma once

#include "sparsight/core/options.h"

namespace sparsight {

struct DistOptions {
  int64_t expert_parallel = 1;
  bool exact = false;
  bool shard_optimizer = false;
  void declare(OptionSet& set);
};

}  // namespace sparsight
