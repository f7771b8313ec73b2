// For backward passes that are written out.
#pragma once

#include <ATen/core/grad_mode.h>

#include "sparsight/core/error.h"

namespace sparsight {

// Called first in a backward pass: raises Error where a graph of it is asked for.
inline void no_second_derivative() {
  if (at::GradMode::is_enabled())
    fail("MoE layers have no second derivative; do not create a graph of the backward pass");
}

}  // namespace sparsight
