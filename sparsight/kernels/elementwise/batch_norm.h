// Batch norm of feature maps with the statistics of the batch, forward and backward. Rows [R,C] are the positions of
// all maps, channels last. Sums are made of blocks of rows in one order, so the bits do not depend on the number of
// threads.
#pragma once

#include <cstdint>

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

struct ChannelRows {
  int64_t rows = 0, channels = 0;  // R, C
};

// mean, variance: [C]; the variance is that of the batch, divided by R. R >= 1.
void batch_moments(Threads& threads, ChannelRows shape, const float* x, double* mean, double* variance);

// y = scale x + shift, channel by channel.
void scale_channels(Threads& threads, ChannelRows shape, const float* x, const float* scale, const float* shift,
                    float* y);

// y = weight (x - mean) inverse + bias, where mean and inverse = 1 / sqrt(variance + epsilon) are those of the
// batch.
struct BatchNormBackward {
  ChannelRows shape;
  const float *grad = nullptr, *x = nullptr;                           // [R,C]; grad: of y
  const float *weight = nullptr, *mean = nullptr, *inverse = nullptr;  // [C]
  float* x_grad = nullptr;                                             // [R,C], or null
  float *weight_grad = nullptr, *bias_grad = nullptr;                  // [C]
};
void batch_norm_backward(Threads& threads, const BatchNormBackward& p);

}  // namespace sparsight::cpu
