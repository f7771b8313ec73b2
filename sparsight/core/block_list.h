// Settings that name blocks of a model: blocks = [0, 2, -1].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sparsight {

// The indices 0 .. depth - 1 of `blocks`, in their order; negative numbers count from the end. Raises UsageError for a
// block that does not exist; where: "[moe]".
std::vector<size_t> block_indices(const std::vector<int64_t>& blocks, int64_t depth, const std::string& where);

// For each of `depth` blocks the number of the list that has it, or -1. Raises UsageError as above, and for a block of
// two lists.
std::vector<int64_t> list_of_each_block(const std::vector<std::vector<int64_t>>& lists, int64_t depth,
                                        const std::string& where);

}  // namespace sparsight
