// How often this thread allocated with new. Sanitizers have a `new` of their own, which counts nothing.
#pragma once

#include <cstdint>

namespace sparsight::test {

int64_t allocations();

}  // namespace sparsight::test
