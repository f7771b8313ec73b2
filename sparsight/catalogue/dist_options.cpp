#include "sparsight/catalogue/dist_options.h"

namespace sparsight {

void DistOptions::declare(OptionSet& set) {
  set.integer(
      "expert_parallel", &expert_parallel, {1, 65536},
      "how many processes have the experts of each MoE layer between them, each its own part; a divisor of the number "
      "of processes and of that of experts; 1: each process has all");
  set.flag("exact", &exact,
           "compute the tokens of each process by themselves, so that expert_parallel changes no bit (slower)");
  set.flag(
      "shard_optimizer", &shard_optimizer,
      "each process keeps the optimiser's state of a part of the parameters, and sends the others their new values "
      "(ZeRO, stage 1): less memory, the same bits");
}

}  // namespace sparsight
