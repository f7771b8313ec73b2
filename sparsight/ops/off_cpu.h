// The namespace that runs the operations of ops/ on tensors that are not on the CPU: ops/cuda/ in builds for CUDA, else
// torch's own operations (ops/ref/), which run on any device.
#pragma once

#ifdef SPARSIGHT_CUDA
#include "sparsight/ops/cuda/operations.h"

namespace sparsight {
namespace off_cpu = cuda;
}  // namespace sparsight
#else
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

namespace sparsight {
namespace off_cpu = ref;
}  // namespace sparsight
#endif
