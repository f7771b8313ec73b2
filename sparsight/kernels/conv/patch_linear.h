// The patch embedding (ops/patch_linear.h) in fp32: patches are gathered into the rows of products, and no matrix of
// patches is stored. Letters: moe/axes.md; C channels, P side of a patch, O outputs.
#pragma once

#include "sparsight/kernels/conv/patch_rows.h"
#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

struct PatchProduct {
  StridedImages images;
  int64_t side = 0, outputs = 0;  // P, O
  const float* weight = nullptr;  // [O,C,P,P]
  const float* bias = nullptr;    // [O], of the forward pass
  bool bf16 = false;              // products of bf16
};

// tokens: [B,S,O].
void patch_linear(Threads& threads, const PatchProduct& p, float* tokens);
// grad: [B,S,O]; pixels: the gradient of the images, contiguous.
void patch_linear_backward(Threads& threads, const PatchProduct& p, const float* grad, float* pixels);
// The patches themselves, rows [B S, C P P] in the order (channel, row, column).
void gather_patches(Threads& threads, const StridedImages& images, int64_t side, float* rows);

}  // namespace sparsight::cpu
