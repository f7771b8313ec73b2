// Checkpoints of a model whose experts are spread over ranks. Rank 0 writes all of them into its file, as one process
// does, and each other rank its own part into a file of its own. A rank never has more than one tensor of all experts
// in memory.
#pragma once

#include "sparsight/io/checkpoint.h"
#include "sparsight/models/spread_experts.h"

namespace sparsight {

// checkpoint: of this rank, with its part of the experts. Collective.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint, const SpreadParameters& spread);

// From a file with all experts or with this rank's part.
Checkpoint read_checkpoint(const std::string& path, const SpreadParameters& spread);

}  // namespace sparsight
