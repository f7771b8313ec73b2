// The importance loss of V-MoE (Riquelme et al. 2021, appendix A.2). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// [E]: sum over tokens of the softmax of the clean logits.
at::Tensor dense_importance(const Routing& routing);

// []: CV²(dense_importance). Differs from the paper: the batch is one group.
at::Tensor importance_loss(const Routing& routing);

}  // namespace sparsight
