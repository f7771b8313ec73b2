// The run folder of a model that has lost experts: other verbs take it as they take the run that it is of.
#pragma once

#include <string>

#include "sparsight/eval/evaluate.h"
#include "sparsight/infer/loaded_model.h"
#include "sparsight/models/prune_experts.h"

namespace sparsight {

// The same checkpoint without the experts that leave: weights, training state and configuration. blocks: that of
// config_with_experts().
Checkpoint pruned_checkpoint(const Checkpoint& checkpoint, const ExpertPruner& pruner, int64_t blocks);

struct PrunedFolder {
  std::string source;     // the run folder or checkpoint that was pruned
  std::string out;        // the folder to write
  Checkpoint best;        // the pruned weights that were measured
  std::string split;      // on which
  Evaluation evaluation;  // of them
  Json provenance;        // what env.json says under "pruned"
};

// Raises Error where something is at `out` already, but for a pruned run.
void check_out(const std::string& out);

// Writes, all or nothing, env.json, superclasses.txt, config.toml, the checkpoint "best", the last one of the source
// with its optimiser, so that its training can go on, and metrics.jsonl with the evaluation. loaded: the pruned model.
// A warning says why there is no last checkpoint. The folder is finished where the source is, or where training cannot
// go on. A pruned run of the same provenance at `out` is what a killed command had finished, and stays; another one
// raises Error.
void write_pruned_folder(const PrunedFolder& folder, const LoadedModel& loaded, const ExpertPruner& pruner,
                         int64_t blocks);

}  // namespace sparsight
