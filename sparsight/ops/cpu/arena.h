// An arena of large pages for large tensors. Outputs of a layer and gradients of its weights are freed and allocated
// again in every step; without the arena their memory would be paged in each time, which costs more than filling them.
// Memory in use and unused memory together never exceed the peak in use.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight::cpu {

// An uninitialised contiguous fp32 tensor on the CPU.
at::Tensor empty_from_arena(at::IntArrayRef sizes);

// Returns the unused memory of the arena to the system.
void release_arena();

}  // namespace sparsight::cpu
