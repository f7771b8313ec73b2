// Blocks of a vision transformer whose MLP has a hidden width of its own: [[model.layer]].
#pragma once

#include <cstdint>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

// The hidden width of the MLP of each of `depth` blocks: `hidden`, unless an entry {blocks = [-2, -1], hidden = 1536}
// of `layers` names the block. Raises UsageError for an entry that lacks one of the two or has another setting, and for
// blocks that do not exist or are in two entries.
std::vector<int64_t> hidden_of_blocks(const Json& layers, int64_t depth, int64_t hidden);

}  // namespace sparsight
