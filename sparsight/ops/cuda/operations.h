// The operations of ops/ on CUDA tensors, by step: everything that a CUDA backend has to provide. Only builds with
// SPARSIGHT_CUDA (preset "cuda") include it, through ops/off_cpu.h. So far each of them is the one of ops/ref/, which
// uses torch's own operations and runs on any device. To add a kernel, replace its line by a declaration with the same
// parameters, and put its source into this folder, listed under `if(SPARSIGHT_CUDA)` in ops/sources.cmake.
#pragma once

#include "sparsight/ops/ref/adam_step.h"
#include "sparsight/ops/ref/attention.h"
#include "sparsight/ops/ref/expert_mlp.h"
#include "sparsight/ops/ref/grouped_linear.h"
#include "sparsight/ops/ref/layer_norm.h"
#include "sparsight/ops/ref/rows.h"
#include "sparsight/ops/ref/softmax_cross_entropy.h"
#include "sparsight/ops/ref/sort_by_expert.h"
#include "sparsight/ops/ref/sum_of_squares.h"
#include "sparsight/ops/ref/top_experts.h"

namespace sparsight::cuda {

// Route.
using ref::top_experts;

// Permute: assignments into groups by expert, tokens into their rows.
using ref::count_by_expert;
using ref::gather_rows;
using ref::map_rows;
using ref::sort_by_expert;

// Grouped GEMMs, alone and as whole experts. The offsets of experts are on the CPU.
using ref::expert_mlp_backward;
using ref::expert_mlp_forward;
using ref::grouped_linear_backward;
using ref::grouped_linear_forward;

// Between experts' layers: the whole of attention but its projections, and layer norm.
using ref::attention_backward;
using ref::attention_forward;
using ref::layer_norm_backward;
using ref::layer_norm_forward;

// Combine: rows back into tokens, and the gradient of their gates.
using ref::dot_rows;
using ref::scatter_add_rows;

// The loss, differentiable.
using ref::softmax_cross_entropy;

// Update weights: the norm of gradients, and the optimiser's step.
using ref::adam_step;
using ref::sum_of_squares;

}  // namespace sparsight::cuda
