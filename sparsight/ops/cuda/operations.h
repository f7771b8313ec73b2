// The operations of ops/ on CUDA tensors: all that a CUDA backend has to provide, by step. Only builds with
// SPARSIGHT_CUDA (preset "cuda") include it, through ops/off_cpu.h. Each of them is ops/ref/ here, which is torch's
// own operations and runs on any device. A kernel takes the place of its line: the declaration with the same
// parameters here, its source in this folder, listed under `if(SPARSIGHT_CUDA)` in ops/sources.cmake.
#pragma once

#include "sparsight/ops/ref/expert_mlp.h"
#include "sparsight/ops/ref/grouped_linear.h"
#include "sparsight/ops/ref/rows.h"
#include "sparsight/ops/ref/sort_by_expert.h"
#include "sparsight/ops/ref/top_experts.h"

namespace sparsight::cuda {

// Route.
using ref::top_experts;

// Permute: assignments into groups by expert, tokens into their rows.
using ref::count_by_expert;
using ref::gather_rows;
using ref::map_rows;
using ref::sort_by_expert;

// Grouped products, by themselves and as whole experts. The offsets of experts come on the CPU.
using ref::expert_mlp_backward;
using ref::expert_mlp_forward;
using ref::grouped_linear_backward;
using ref::grouped_linear_forward;

// Combine: rows back into tokens, and the gradient of their gates.
using ref::dot_rows;
using ref::scatter_add_rows;

}  // namespace sparsight::cuda
