// What malloc does with freed memory, for the whole process.
#pragma once

namespace sparsight {

// From now on malloc keeps what is freed for what is allocated next, instead of returning it to the system. For work
// that allocates tensors of many images again and again, whose pages would be mapped and cleared each time. Costs the
// difference between what is in use and what was at the peak. Without effect unless malloc is glibc's.
void keep_freed_memory();

// Returns to the system what malloc keeps, so that resident memory is what is in use. Without effect unless malloc is
// glibc's.
void release_freed_memory();

}  // namespace sparsight
