// Memory used by CPU tensors.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

namespace sparsight::test {

// Counts the bytes of the tensors allocated during its lifetime.
class LiveBytes : public c10::Allocator {
 public:
  LiveBytes() : usual_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this); }
  ~LiveBytes() override { c10::SetCPUAllocator(usual_); }

  int64_t count() const { return *bytes_; }

  c10::DataPtr allocate(size_t bytes) override {
    void* const memory = std::aligned_alloc(kHeader, (bytes / kHeader + 2) * kHeader);
    if (!memory) throw std::bad_alloc();
    new (memory) Block{static_cast<int64_t>(bytes), bytes_};
    *bytes_ += static_cast<int64_t>(bytes);
    void* const data = static_cast<char*>(memory) + kHeader;
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  // Stored before the data, where the deleter finds it.
  struct Block {
    int64_t bytes;
    std::shared_ptr<std::atomic<int64_t>> total;  // blocks may outlive the counter
  };
  static constexpr size_t kHeader = 64;
  static_assert(sizeof(Block) <= kHeader);

  static void release(void* data) {
    auto* const block = reinterpret_cast<Block*>(static_cast<char*>(data) - kHeader);
    *block->total -= block->bytes;
    block->~Block();
    std::free(block);
  }

  c10::Allocator* usual_;
  std::shared_ptr<std::atomic<int64_t>> bytes_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace sparsight::test
