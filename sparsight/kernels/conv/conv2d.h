// A convolution for training, as products of window rows, forward and backward: unlike PackedConv its weights change
// with every call, and it multiplies fp32 or bf16. Maps are channels last. Each element of a result is summed in an
// order that the shapes alone determine, so the bits do not depend on the number of threads. Letters: B images, C input
// and O output channels, K taps on each axis.
#pragma once

#include <cstdint>

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

struct ConvAxis {
  int64_t side = 0, outputs = 0;  // positions of the input and of the output
  int64_t before = 0;             // zeros before the first position; after the last as many as the output needs
};

struct Conv2d {
  int64_t images = 0, inputs = 0, outputs = 0;  // B, C, O
  int64_t kernel = 1, stride = 1;               // K
  ConvAxis down{}, across{};
  bool bf16 = false;  // products of bf16
};

// x: [B,H,W,C], weight: [O,K,K,C], bias: [O] or null; y: [B,H',W',O].
void conv2d(Threads& threads, const Conv2d& conv, const float* x, const float* weight, const float* bias, float* y);
// grad: of y; x_grad: [B,H,W,C], overwritten.
void conv2d_backward_input(Threads& threads, const Conv2d& conv, const float* grad, const float* weight, float* x_grad);
// weight_grad: [O,K,K,C]; bias_grad: [O] or null. Both are overwritten.
void conv2d_backward_weight(Threads& threads, const Conv2d& conv, const float* grad, const float* x, float* weight_grad,
                            float* bias_grad);

}  // namespace sparsight::cpu
