// The first cache of a core, for kernels that prefetch.
#pragma once

namespace sparsight::cpu {

// Whether it has 48 KB or more, or is unknown. 32 KB are too small to prefetch into.
extern const bool kFirstCacheIsLarge;

}  // namespace sparsight::cpu
