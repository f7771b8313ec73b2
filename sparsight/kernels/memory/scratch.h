// Memory of short-lived local arrays. Each thread keeps what its arrays give back, so that calls after the first ones
// allocate nothing: std::pmr::vector<int64_t> next(count, scratch()). Arrays stay on the thread that made them.
#pragma once

#include <memory_resource>

namespace sparsight::cpu {

inline std::pmr::memory_resource* scratch() {
  thread_local std::pmr::unsynchronized_pool_resource memory(
      {.max_blocks_per_chunk = 8, .largest_required_pool_block = 1 << 20});
  return &memory;
}

}  // namespace sparsight::cpu
