// Checkpoints that all ranks of a training write together ([dist] checkpoint_parts), each the tensors that it alone
// has: its part of spread experts with their optimiser state and averages, or its shard of the optimiser's state. Rank
// 0 also writes what all ranks have. Nothing but names travels between them. The files: io/part_files.h.
#pragma once

#include "sparsight/dist/group.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/models/spread_experts.h"

namespace sparsight {

// path: of the one file that one process would write, in a folder that all ranks see; it is removed. checkpoint: of
// this rank. Collective: returns when the checkpoint is complete. Raises Error on all ranks where one cannot write.
void write_checkpoint_by_rank(const std::string& path, const Checkpoint& checkpoint, const SpreadParameters& spread,
                              dist::Group& group);

}  // namespace sparsight
