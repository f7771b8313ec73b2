#include "sparsight/core/freed_memory.h"

#include <limits>  // and the macro __GLIBC__

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace sparsight {

void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 25);  // the highest that glibc takes
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

void release_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace sparsight
