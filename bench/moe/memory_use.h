// The memory of one training step of the experts, compared with that of the dense MLP over the same rows.
#pragma once

#include <cstdint>

namespace sparsight::bench {

// Each implementation runs in its own process, whose resident memory is read. Call it before this process has started
// threads.
void print_memory_use(int64_t tokens, int64_t experts, int64_t k, int64_t threads);

}  // namespace sparsight::bench
