// Layer norm of rows [R,D] in fp32, whose results, the gradients of weight and bias included, have the same bits for
// any number of threads.
#pragma once

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

struct LayerNormForward {
  int64_t rows = 0, width = 0;                     // R, D
  const float* x = nullptr;                        // [R,D]
  const float *weight = nullptr, *bias = nullptr;  // [D]
  double epsilon = 0;
  float* out = nullptr;      // [R,D]
  float* moments = nullptr;  // [R,2]: mean and 1 / sqrt(variance + epsilon), for the backward pass; or null
};
void layer_norm(Threads& threads, const LayerNormForward& p);

struct LayerNormBackward {
  int64_t rows = 0, width = 0;  // R, D
  const float *grad = nullptr, *x = nullptr, *weight = nullptr, *moments = nullptr;
  const float* residual = nullptr;                     // [R,D], is added to the gradient of x; or null
  float* x_grad = nullptr;                             // [R,D]
  float *weight_grad = nullptr, *bias_grad = nullptr;  // [D], or both null
};
void layer_norm_backward(Threads& threads, const LayerNormBackward& p);

}  // namespace sparsight::cpu
