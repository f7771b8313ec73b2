#include "sparsight/ops/cpu/first_cache.h"

#include <unistd.h>

namespace sparsight::cpu {
namespace {

// 0 if unknown.
long first_cache_bytes() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  return sysconf(_SC_LEVEL1_DCACHE_SIZE);
#else
  return 0;
#endif
}

}  // namespace

const bool kFirstCacheIsLarge = first_cache_bytes() <= 0 || first_cache_bytes() >= 48 << 10;

}  // namespace sparsight::cpu
