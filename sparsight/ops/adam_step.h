// A step of Adam or AdamW (kernels/elementwise/adam_step.h) on tensors.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/kernels/elementwise/adam_step.h"

namespace sparsight {

// A parameter with its state: tensors of one shape, type and device. All but `gradient` are overwritten.
struct AdamTensors {
  at::Tensor value, gradient, exp_avg, exp_avg_sq;
  at::Tensor average = {};  // may be undefined
  double updates = 1;       // t
};

// In fp32 on a CPU tensors that lie in memory in the same dense order, whatever that is, are updated by the kernels;
// others, and other types and devices, by torch's operations. The same bits for any number of threads.
void adam_step(const std::vector<AdamTensors>& parameters, const AdamStep& step);

}  // namespace sparsight
