// The memory that one training step of the experts takes, beside that of the dense MLP over the same rows.
#pragma once

#include <cstdint>

namespace sparsight::bench {

// Each way runs in a process of its own, whose resident memory is read; call before this process has started threads.
void print_memory_use(int64_t tokens, int64_t experts, int64_t k, int64_t threads);

}  // namespace sparsight::bench
