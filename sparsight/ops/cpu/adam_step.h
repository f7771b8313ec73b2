// ops/adam_step.h for fp32 on a CPU, in chunks of a fixed size over all parameters.
#pragma once

#include "sparsight/ops/adam_step.h"

namespace sparsight::cpu {

// The tensors of each parameter have the same strides, and no gaps or overlaps in memory.
void adam_step(const std::vector<AdamTensors>& parameters, const AdamStep& step);

}  // namespace sparsight::cpu
