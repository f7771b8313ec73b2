#include "sparsight/catalogue/run_options.h"

#include <ATen/Parallel.h>

namespace sparsight {

void RunOptions::declare(OptionSet& set) {
  set.integer("seed", &seed, {0, INT64_MAX}, "seed of all random streams");
  set.integer("threads", &threads, {0, 1024}, "compute threads; 0: all cores");
}

void apply_threads(const RunOptions& options) {
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
}

}  // namespace sparsight
