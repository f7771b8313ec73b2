// The router gradient of separate-training pMoE, and how far a batch's gradient is from the expected one:
// Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional
// Neural Networks", lemma E.1 and the concentration of appendix E. Two classes: label 0 is the paper's y = +1.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/papers/pmoe/theory/pattern_model.h"

namespace sparsight::pmoe {

// [N,d]: -y * sum of the sample's patches, each sample's term of dl/dw_1 (equation 6); dl/dw_2 is its negative.
at::Tensor router_gradients(const PatternSamples& samples);

// [d]: -(o_1 - o_2) / 2 (lemma E.1). patterns: [2,d].
at::Tensor expected_router_gradient(const at::Tensor& patterns);

// Distance between the mean gradient of `count` samples of a split (`part`) and the expected gradient.
double router_gradient_deviation(const PatternModel& model, const std::string& part, int64_t count);

// Shuffles `gradients` ([N,d]), splits them into batches of `size` and returns the root mean square distance between a
// batch's mean and the mean of all.
double batch_gradient_deviation(const at::Tensor& gradients, int64_t size, uint64_t seed);

}  // namespace sparsight::pmoe
