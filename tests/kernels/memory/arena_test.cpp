// Large arrays take the memory that others gave back; small ones come from malloc.
#include <cstdint>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

#include "sparsight/kernels/memory/arena.h"

namespace sparsight::arena_kernel_test {

TEST(ArenaArray, IsUsedAgain) {
  cpu::release_arena();
  for (const size_t bytes : {size_t{100}, size_t{3} << 20}) {
    cpu::ArenaArray first(bytes);
    std::memset(first.data(), 1, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % 64, 0u);
    cpu::ArenaArray second = std::move(first);
    EXPECT_EQ(first.data(), nullptr);
    const void* const memory = second.data();
    second = cpu::ArenaArray();
    if (bytes < cpu::kSmallArray) continue;
    EXPECT_EQ(cpu::ArenaArray(bytes).data(), memory);
  }
  EXPECT_EQ(cpu::ArenaArray(0).data(), nullptr);
  cpu::release_arena();
}

}  // namespace sparsight::arena_kernel_test
