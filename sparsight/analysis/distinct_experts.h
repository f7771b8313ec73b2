// How many experts an image needs. Daxberger et al. 2023, "Mobile V-MoEs", section 4. Letters: moe/axes.md.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/moe/routing.h"

namespace sparsight {

// [B] int64: how many different experts each image's tokens were computed by, after capacity. Exactly K of a per-image
// router without capacity. images: B.
at::Tensor distinct_experts(const Routing& routing, int64_t images);

}  // namespace sparsight
