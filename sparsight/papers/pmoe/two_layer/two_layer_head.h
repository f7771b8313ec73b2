// Forward and backward pass of a two-layer patch network after its first layer, from the filters' outputs to the loss.
// Hand-written loops, because the tensors are too small for one ATen operation each. Chowdhury et al. 2023,
// "Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", equations
// 1, 2, 13, 19, 23 to
// 25. Letters: E experts of F filters, B images, l patches per expert, O outputs (1 for two classes).
// Differs from the paper: the derivative of ReLU at 0 is 0, as in PyTorch, not 1.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight::pmoe {

struct TwoLayerHead {
  at::Tensor output;   // a: [E,F,O]
  at::Tensor gate;     // [E,B,l]; undefined: all 1
  at::Tensor labels;   // [B] int64
  double divisor = 1;  // of the sum over patches
};

struct HeadLoss {
  double loss = 0;       // sum over images
  int64_t wrong = 0;     // an output of 0 counts as wrong
  at::Tensor grad_gate;  // [E,B,l], of the mean loss over the images; undefined without gates
};

// hidden: [E*B*l,F], pre-ReLU, fp32 or fp64, contiguous. Overwritten with its gradient of the mean loss.
HeadLoss two_layer_head(const TwoLayerHead& head, at::Tensor& hidden);

}  // namespace sparsight::pmoe
