// From the filters' outputs to the loss and back: what a two-layer patch network does behind its first layer, written
// out in loops, as its tensors are too small to be worth an operation each. Chowdhury et al. 2023, "Patch-level Routing
// in Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", equations 1, 2, 13, 19, 23 to
// 25. Letters: E experts of F filters, B images, l patches an expert, O outputs (1 for two classes).
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight::pmoe {

struct TwoLayerHead {
  at::Tensor output;   // a: [E,F,O]
  at::Tensor gate;     // [E,B,l], or undefined: 1
  at::Tensor labels;   // [B] int64
  double divisor = 1;  // of the sum over patches
};

struct HeadLoss {
  double loss = 0;       // summed over images
  int64_t wrong = 0;     // an output of 0 is wrong
  at::Tensor grad_gate;  // [E,B,l] of the mean loss over the images; undefined without gates
};

// hidden: [E*B*l,F] before its ReLU, fp32 or fp64, contiguous; becomes the gradient of the mean loss by it.
HeadLoss two_layer_head(const TwoLayerHead& head, at::Tensor& hidden);

}  // namespace sparsight::pmoe
