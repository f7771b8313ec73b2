// Tensors in the arena of kernels/memory/arena.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/kernels/memory/arena.h"

namespace sparsight::cpu {

// An uninitialised contiguous fp32 tensor on the CPU; a small one has torch's own memory.
at::Tensor empty_from_arena(at::IntArrayRef sizes);

}  // namespace sparsight::cpu
