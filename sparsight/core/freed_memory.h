// What malloc does with freed memory, for the whole process.
#pragma once

namespace sparsight {

// Returns to the system what malloc keeps, so that resident memory is what is in use. Without effect unless malloc is
// glibc's.
void release_freed_memory();

}  // namespace sparsight
