// A linear classifier on all patches of a sample side by side, which the distribution of patch routing is meant to be
// too hard for: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for
// Convolutional Neural Networks", appendix K.1.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "sparsight/papers/pmoe/theory/pattern_model.h"

namespace sparsight::pmoe {

struct LinearClassifier {
  at::Tensor weight;          // [n d] fp64
  double training_error = 0;  // share of the training samples
  int64_t iterations = 0;
};

// Logistic regression with a small ridge, by Newton's method until the gradient is below 1e-8, at most `iterations`
// steps: the best that a linear classifier can do, up to the ridge. A set that can be separated linearly is separated.
LinearClassifier train_linear(const PatternSamples& samples, int64_t iterations = 100, double ridge = 1e-6);

// [N]: above 0 for class 1.
at::Tensor linear_outputs(const LinearClassifier& classifier, const PatternSamples& samples);

}  // namespace sparsight::pmoe
