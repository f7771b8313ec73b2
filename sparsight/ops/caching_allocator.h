// Memory of torch's CPU tensors that is reused instead of returned to the system.
//
// A training step allocates and frees the same large tensors again and again. glibc returns such memory to the system,
// and each page that comes back is mapped and cleared anew: up to half of a step's time. PyTorch has a caching
// allocator for GPUs only.
#pragma once

#include <cstdint>

namespace sparsight {

// From now on torch allocates CPU tensors of at least 64 KiB from freed ones of the same size class. What is cached
// and in use together stays below twice the most that has been in use. The whole process is affected, including
// tensors of a program that links the library; tensors that exist already are freed as before. Without effect under
// the address sanitizer, which could not see uses of freed tensors.
void use_caching_allocator();

// Returns all cached blocks to the system. Without effect unless the allocator is used.
void release_cached_blocks();

struct CachingAllocatorBytes {
  int64_t in_use = 0, cached = 0, most_in_use = 0;
};
CachingAllocatorBytes caching_allocator_bytes();  // zeros unless the allocator is used

}  // namespace sparsight
