// ops/adam_step.h in torch's operations, one after the other.
#pragma once

#include "sparsight/ops/adam_step.h"

namespace sparsight::ref {

void adam_step(const AdamTensors& parameter, const AdamStep& step);

}  // namespace sparsight::ref
