#include "sparsight/kernels/isa/first_cache.h"

#include <unistd.h>

namespace sparsight::cpu {
namespace {

bool is_large() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);  // 0 or less if unknown
  return bytes <= 0 || bytes >= 48 << 10;
#else
  return true;
#endif
}

}  // namespace

const bool kFirstCacheIsLarge = is_large();

}  // namespace sparsight::cpu
