// Scratch memory of the kernels, kept from call to call so that a layer allocates nothing after its first run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace sparsight::cpu {

// A buffer that only grows, and loses its contents when it does.
class Workspace {
 public:
  float* floats(int64_t count) {
    const auto bytes = static_cast<size_t>((count * 4 + 63) / 64 * 64);
    if (bytes > size_) {
      memory_.reset();
      memory_.reset(std::aligned_alloc(64, bytes));
      if (!memory_) throw std::bad_alloc();
      size_ = bytes;
    }
    return static_cast<float*>(memory_.get());
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t size_ = 0;
};

}  // namespace sparsight::cpu
