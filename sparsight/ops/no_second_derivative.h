// For hand-written backward passes.
#pragma once

#include <ATen/core/grad_mode.h>

#include "sparsight/core/error.h"

namespace sparsight {

// Called first in a backward pass: raises Error if autograd is to record it (create_graph).
inline void no_second_derivative(const char* what = "MoE layers have") {
  if (at::GradMode::is_enabled()) fail(what, " no second derivative; call backward without create_graph");
}

}  // namespace sparsight
