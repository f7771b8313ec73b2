// Section [dist]: how the processes that train a model share it out.
#pragma once

#include "sparsight/core/options.h"

namespace sparsight {

struct DistOptions {
  int64_t expert_parallel = 1;
  bool exact = false;
  bool shard_optimizer = false;
  bool checkpoint_parts = false;
  void declare(OptionSet& set);
};

// Those of a resolved configuration; the defaults for one from before the section existed.
DistOptions dist_options(const Json& config);

}  // namespace sparsight
