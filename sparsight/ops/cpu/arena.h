// Large tensors in large pages, whose memory goes back to a arena when they are freed: what a layer returns and the
// gradients of its weights, freed and asked for again in every step, would otherwise be paged in anew each time, which
// costs more than filling them. With its unused memory a arena is never larger than twice what was in use at a time.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight::cpu {

// An uninitialised contiguous fp32 tensor on the CPU.
at::Tensor empty_from_arena(at::IntArrayRef sizes);

// Gives unused memory of the arena back to the system.
void release_arena();

}  // namespace sparsight::cpu
