#include "sparsight/core/freed_memory.h"

#include <cstdlib>  // and the macro __GLIBC__

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace sparsight {

void release_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace sparsight
