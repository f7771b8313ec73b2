#include "sparsight/catalogue/dist_options.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"

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
  set.flag(
      "checkpoint_parts", &checkpoint_parts,
      "each process writes what it alone has of a checkpoint into a file of its own, in the run's folder, which all "
      "must see, instead of sending it to the first one");
}

DistOptions dist_options(const Json& config) {
  return config.contains("dist") ? read_section<DistOptions>(config, "dist") : DistOptions();
}

}  // namespace sparsight
