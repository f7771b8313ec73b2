// A linear classifier on the concatenated patches of a sample. The data distribution of the patch routing paper is
// meant not to be linearly separable: Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably
// Sample-efficient for Convolutional Neural Networks", appendix K.1.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "sparsight/papers/pmoe/theory/pattern_model.h"

namespace sparsight::pmoe {

struct LinearClassifier {
  at::Tensor weight;          // [n d] fp64
  double training_error = 0;  // fraction of the training samples
  int64_t iterations = 0;
};

// Logistic regression with a small ridge penalty, by Newton's method until the gradient norm is below 1e-8, for at most
// `iterations` steps. Up to the ridge this is the best linear classifier; it separates every linearly separable set.
LinearClassifier train_linear(const PatternSamples& samples, int64_t iterations = 100, double ridge = 1e-6);

// [N]: above 0 predicts class 1.
at::Tensor linear_outputs(const LinearClassifier& classifier, const PatternSamples& samples);

}  // namespace sparsight::pmoe
