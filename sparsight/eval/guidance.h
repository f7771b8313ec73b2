// Super-class guidance: each expert is assigned to one super-class of the dataset, and the router is trained with the
// super-class of each image. Daxberger et al. 2023, "Mobile V-MoEs: Scaling Down Vision Transformers via Sparse
// Mixture-of-Experts", section 3; separately trained routers of Chowdhury et al. 2023 ("Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", equation 6). Letters:
// moe/axes.md; G super-classes.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

// [K,G] 0/1: which super-class each class belongs to; undefined if the dataset has none.
at::Tensor super_class_membership(const DataInfo& data);

// [B,G] fp32, rows sum to 1: each image's super-class, or, if the batch has soft targets (mixup, cutmix, label
// smoothing), their sums over the classes of each super-class. Undefined for an undefined membership.
at::Tensor super_class_targets(const Batch& batch, const at::Tensor& membership);

// The membership that guides a run's routers: expert e is for super-class e. Undefined if there are not as many
// super-classes as experts; this logs a warning if the router's paper guides it, and raises UsageError if the
// configuration asks for guidance (a weight for a loss with needs_target, or a router that needs_target).
at::Tensor guidance(const Json& resolved, const DataInfo& data);

}  // namespace sparsight
