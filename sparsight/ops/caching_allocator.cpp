#include "sparsight/ops/caching_allocator.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

namespace sparsight {
namespace {

constexpr size_t kSmallest = size_t{64} << 10;  // of a cached block; malloc handles smaller ones well
constexpr size_t kHeader = 64;                  // before the data, which keep their alignment of 64: the size class
constexpr size_t kMaxOverhead = 2;              // of cached and used bytes, in multiples of the most that was in use
constexpr uint8_t kPriority = 1;                // above c10's own allocator for CPUs

// Eight size classes between powers of two: at most an eighth of a block is unused.
size_t size_class(size_t bytes) {
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

// Blocks begin with a header that holds their size class.
class BlockCache {
 public:
  void* allocate(size_t size) {
    const std::lock_guard lock(mutex_);
    void* block = nullptr;
    auto& blocks = of_size_[size];
    if (blocks.empty()) {
      release_down_to(kMaxOverhead * most_in_use_, size);
      block = c10::alloc_cpu(kHeader + size);
    } else {  // the last one that was freed is the likeliest to be in the CPU's caches
      block = blocks.back()->block;
      freed_.erase(blocks.back());
      blocks.pop_back();
      cached_ -= size;
    }
    in_use_ += size;
    most_in_use_ = std::max(most_in_use_, in_use_);
    return block;
  }

  void free(void* block, size_t size) {
    const std::lock_guard lock(mutex_);
    in_use_ -= size;
    cached_ += size;
    of_size_[size].push_back(freed_.insert(freed_.end(), {block, size}));
  }

  void release() {
    const std::lock_guard lock(mutex_);
    while (!freed_.empty()) release_oldest();
    most_in_use_ = in_use_;
  }

  CachingAllocatorBytes bytes() {
    const std::lock_guard lock(mutex_);
    return {static_cast<int64_t>(in_use_), static_cast<int64_t>(cached_), static_cast<int64_t>(most_in_use_)};
  }

 private:
  struct Freed {
    void* block;
    size_t size;
  };

  // Until `more` bytes fit below the limit, or nothing is cached.
  void release_down_to(size_t limit, size_t more) {
    while (!freed_.empty() && in_use_ + cached_ + more > limit) release_oldest();
  }

  void release_oldest() {
    const Freed oldest = freed_.front();
    auto& blocks = of_size_[oldest.size];
    blocks.erase(blocks.begin());  // the oldest of its size
    freed_.pop_front();
    cached_ -= oldest.size;
    c10::free_cpu(oldest.block);
  }

  std::mutex mutex_;
  std::list<Freed> freed_;  // the oldest first
  std::unordered_map<size_t, std::vector<std::list<Freed>::iterator>> of_size_;
  size_t in_use_ = 0, cached_ = 0, most_in_use_ = 0;
};

// Never destroyed: tensors with static lifetime are freed later.
BlockCache& block_cache() {
  static BlockCache& cache = *new BlockCache;
  return cache;
}

std::atomic<bool> is_used = false;

void free_block(void* data) {
  if (!data) return;
  void* block = static_cast<char*>(data) - kHeader;
  const size_t size = *static_cast<size_t*>(block);
  if (size == 0)
    c10::free_cpu(block);
  else
    block_cache().free(block, size);
}

class CachingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = nullptr;
    if (bytes > 0) {
      const size_t size = bytes < kSmallest ? 0 : size_class(bytes);
      void* block = size == 0 ? c10::alloc_cpu(kHeader + bytes) : block_cache().allocate(size);
      *static_cast<size_t*>(block) = size;
      data = static_cast<char*>(block) + kHeader;
    }
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void use_caching_allocator() {
#if !defined(__SANITIZE_ADDRESS__)
  if (is_used.exchange(true)) return;
  static CachingAllocator& allocator = *new CachingAllocator;
  c10::SetCPUAllocator(&allocator, kPriority);
#endif
}

void release_cached_blocks() {
  if (is_used) block_cache().release();
}

CachingAllocatorBytes caching_allocator_bytes() { return is_used ? block_cache().bytes() : CachingAllocatorBytes(); }

}  // namespace sparsight
