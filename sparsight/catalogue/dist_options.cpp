#include "sparsight/catalogue/dist_options.h"

namespace sparsight {

void DistOptions::declare(OptionSet& set) {
  set.integer(
      "expert_parallel", &expert_parallel, {1, 65536},
      "how many processes have the experts of each MoE layer between them, each its own part; a divisor of the number "
      "of processes and of that of experts; 1: each process has all");
  set.flag("exact", &exact,
           "compute the tokens of each process by themselves, so that expert_parallel changes no bit (slower)");
}

}  // namespace sparsight
