// An arena of large pages for large arrays. Outputs of a layer and gradients of its weights are freed and allocated
// again in every step; without the arena their memory would be paged in each time, which costs more than filling them.
// Memory in use and unused memory together never exceed 1.5 times the peak in use: with the peak itself, blocks of one
// size would make room for those of another one in every step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace sparsight::cpu {

// Up to this size malloc is as fast, and used.
constexpr size_t kSmallArray = size_t{1} << 20;

// Uninitialised memory, aligned to 64 bytes, which is given back when this ends.
class ArenaArray {
 public:
  ArenaArray() = default;
  // Raises Error where there is not enough memory.
  explicit ArenaArray(size_t bytes);
  ~ArenaArray();
  ArenaArray(ArenaArray&& other) noexcept { swap(other); }
  ArenaArray& operator=(ArenaArray&& other) noexcept {
    swap(other);
    return *this;
  }

  void* data() const { return memory_; }

 private:
  void swap(ArenaArray& other) {
    std::swap(memory_, other.memory_);
    std::swap(mapped_, other.mapped_);
  }

  void* memory_ = nullptr;
  size_t mapped_ = 0;  // bytes of the arena; 0: from malloc
};

// The same, to be shared; never null.
inline std::shared_ptr<const void> shared_array(int64_t bytes) {
  auto memory = std::make_shared<const ArenaArray>(bytes > 0 ? static_cast<size_t>(bytes) : 1);
  const void* const data = memory->data();
  return {std::move(memory), data};
}

// Returns the unused memory of the arena to the system.
void release_arena();

}  // namespace sparsight::cpu
