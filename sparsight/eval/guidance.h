// Super-class guidance: each expert is assigned to one super-class of the data, and the router is trained with the
// super-class of each image. Daxberger et al. 2023, "Mobile V-MoEs: Scaling Down Vision Transformers via Sparse
// Mixture-of-Experts", section 3; separately trained routers of Chowdhury et al. 2023 ("Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", equation 6). Letters:
// moe/axes.md; G super-classes.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

// [K,G] 0/1: which super-class each class belongs to; undefined if there are none.
at::Tensor super_class_membership(const DataInfo& data);

// [B,G] fp32, rows sum to 1: each image's super-class, or, if the batch has soft targets (mixup, cutmix, label
// smoothing), their sums over the classes of each super-class. Undefined for an undefined membership.
at::Tensor super_class_targets(const Batch& batch, const at::Tensor& membership);

// Whether a router of the model is guided: a loss with needs_target has a weight, set or by its paper, or will have one
// (moe.schedule), or the router itself needs_target.
bool is_guided(const Json& resolved);

// The number of experts of the guided routers; of [moe] if none is guided.
int64_t guided_experts(const Json& resolved);

// The membership that guides a run's routers: expert e is for super-class e. Undefined if no router is guided. Raises
// UsageError if one is and there are not as many super-classes as experts, or images have several labels.
at::Tensor guidance(const Json& resolved, const DataInfo& data);

// [K] the super-class of each class, for measuring the routers of a trained model; empty where guidance() is undefined
// or raises an error.
std::vector<int64_t> guiding_super_classes(const Json& resolved, const DataInfo& data);

}  // namespace sparsight
