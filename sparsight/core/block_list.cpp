#include "sparsight/core/block_list.h"

#include "sparsight/core/error.h"

namespace sparsight {

std::vector<size_t> block_indices(const std::vector<int64_t>& blocks, int64_t depth, const std::string& where) {
  std::vector<size_t> indices;
  for (const int64_t block : blocks) {
    const int64_t index = block < 0 ? depth + block : block;
    if (index < 0 || index >= depth)
      fail_usage(where, " blocks: there is no block ", block, " in a model of ", depth, " blocks; allowed are ", -depth,
                 " to ", depth - 1);
    indices.push_back(static_cast<size_t>(index));
  }
  return indices;
}

std::vector<int64_t> list_of_each_block(const std::vector<std::vector<int64_t>>& lists, int64_t depth,
                                        const std::string& where) {
  std::vector<int64_t> block_to_list(static_cast<size_t>(depth), -1);
  for (size_t list = 0; list < lists.size(); ++list)
    for (const size_t block : block_indices(lists[list], depth, where)) {
      const auto number = static_cast<int64_t>(list);
      if (block_to_list[block] >= 0 && block_to_list[block] != number)
        fail_usage(where, " has block ", block, " twice; list each block once");
      block_to_list[block] = number;
    }
  return block_to_list;
}

}  // namespace sparsight
