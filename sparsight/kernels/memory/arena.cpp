#include "sparsight/kernels/memory/arena.h"

#ifndef __EMSCRIPTEN__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "sparsight/core/error.h"

namespace sparsight::cpu {
namespace {

#ifndef __EMSCRIPTEN__
constexpr size_t kPage = size_t{2} << 20;  // large pages: fewer page faults and TLB misses
#endif
constexpr size_t kStep = size_t{64} << 10;  // sizes are multiples of it: the end of a block is in small pages

struct Block {
  void* memory;
  size_t bytes;
};

// Used and unused memory together never exceed 1.5 times the peak in use; the block that was given back first is freed
// first.
struct Arena {
  std::mutex mutex;
  std::vector<Block> unused;  // in the order in which they were given back
  size_t unused_bytes = 0, used_bytes = 0, peak_used_bytes = 0;
};
Arena& arena() {
  static auto* const only = new Arena;  // never destroyed: arrays may be freed at exit
  return *only;
}

#ifdef __EMSCRIPTEN__

// WebAssembly gives no memory back to the system, and has no pages to choose among: blocks are those of malloc.
void free_block(const Block& block) { std::free(block.memory); }

Block new_block(size_t bytes) {
  void* const memory = std::aligned_alloc(kStep, bytes);
  if (!memory) fail("not enough memory for ", bytes >> 20, " MB more; use a smaller model or smaller inputs");
  return {memory, bytes};
}

#else

void free_block(const Block& block) { munmap(block.memory, block.bytes); }

// Mapped, not from malloc, which may keep freed memory: this goes back to the system. Aligned to kPage.
Block new_block(size_t bytes) {
  void* const mapped = mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    fail("not enough memory for ", bytes >> 20, " MB more; use a smaller model or smaller inputs");
  auto* const first = static_cast<std::byte*>(mapped);
  const size_t padding = (kPage - reinterpret_cast<uintptr_t>(mapped) % kPage) % kPage;
  std::byte* const memory = first + padding;
  if (padding) munmap(first, padding);
  munmap(memory + bytes, kPage - padding);
#ifdef MADV_HUGEPAGE
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return {memory, bytes};
}

#endif

void free_oldest(Arena& of, size_t allowed_bytes) {
  size_t freed = 0;
  for (; of.unused_bytes > allowed_bytes; ++freed) {
    free_block(of.unused[freed]);
    of.unused_bytes -= of.unused[freed].bytes;
  }
  of.unused.erase(of.unused.begin(), of.unused.begin() + static_cast<ptrdiff_t>(freed));
}

void keep_within_bounds(Arena& of) { free_oldest(of, of.peak_used_bytes + of.peak_used_bytes / 2 - of.used_bytes); }

// A block of at least `bytes` bytes: the smallest unused one, or a new one if that would waste over a quarter of it.
Block take(size_t bytes) {
  Arena& from = arena();
  const std::scoped_lock lock(from.mutex);
  auto best = from.unused.end();
  for (auto block = from.unused.begin(); block != from.unused.end(); ++block)
    if (block->bytes >= bytes && block->bytes - block->bytes / 4 <= bytes &&
        (best == from.unused.end() || block->bytes <= best->bytes))
      best = block;
  const Block taken = best == from.unused.end() ? new_block(bytes) : *best;
  if (best != from.unused.end()) {
    from.unused_bytes -= taken.bytes;
    from.unused.erase(best);
  }
  from.used_bytes += taken.bytes;
  from.peak_used_bytes = std::max(from.peak_used_bytes, from.used_bytes);
  keep_within_bounds(from);
  return taken;
}

void give_back(Block block) {
  Arena& to = arena();
  const std::scoped_lock lock(to.mutex);
  to.used_bytes -= block.bytes;
  to.unused_bytes += block.bytes;
  to.unused.push_back(block);
  keep_within_bounds(to);
}

}  // namespace

ArenaArray::ArenaArray(size_t bytes) {
  if (bytes >= kSmallArray) {
    const Block block = take((bytes + kStep - 1) / kStep * kStep);
    memory_ = block.memory, mapped_ = block.bytes;
  } else if (bytes > 0) {
    memory_ = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory_) fail("not enough memory for ", bytes, " bytes more; use a smaller model or smaller inputs");
  }
}

ArenaArray::~ArenaArray() {
  if (mapped_ > 0)
    give_back({memory_, mapped_});
  else
    std::free(memory_);
}

void release_arena() {
  const std::scoped_lock lock(arena().mutex);
  free_oldest(arena(), 0);
  arena().peak_used_bytes = arena().used_bytes;
}

}  // namespace sparsight::cpu
