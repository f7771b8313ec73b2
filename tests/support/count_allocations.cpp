#include "tests/support/count_allocations.h"

#include <cstdlib>
#include <new>

namespace sparsight::test {
namespace {

thread_local int64_t count = 0;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* counted(void* memory) {
  ++count;
  if (!memory) throw std::bad_alloc();
  return memory;
}
#endif

}  // namespace

int64_t allocations() { return count; }

}  // namespace sparsight::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) { return sparsight::test::counted(std::malloc(size > 0 ? size : 1)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto side = static_cast<std::size_t>(alignment);
  return sparsight::test::counted(std::aligned_alloc(side, (size + side) / side * side));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif
