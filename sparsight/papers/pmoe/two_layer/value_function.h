// The value function of the proofs about patch routing: Chowdhury et al. 2023, "Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", appendix G: v(x, y) = 1 / (1 +
// exp(y f(x))). A prediction is wrong if and only if v >= 1/2, so the mean of v over a class bounds the class's error.
#pragma once

#include <array>

#include <ATen/core/Tensor.h>

namespace sparsight::pmoe {

// For the two classes, label 0 first.
struct ValueFunction {
  std::array<double, 2> value = {};  // mean of v; 0 for a class without samples
  std::array<double, 2> error = {};  // fraction of wrong predictions; f = 0 is wrong
};

// f: [N], above 0 predicts class 1. labels: [N] int64. Asserts what holds on any finite set: error <= 2 value, and
// error <= sqrt(value) if sqrt(value) < 1/2.
ValueFunction value_function(const at::Tensor& f, const at::Tensor& labels);

}  // namespace sparsight::pmoe
