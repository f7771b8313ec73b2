// A soft router's decision, as a plain value: every expert slot takes a weighted mean of an image's tokens, every
// token a weighted mean of the slots' outputs (Soft MoE, Puigcerver et al. 2024). Letters: moe/axes.md; P = E * slots.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

struct SoftRouting {
  std::string layer;  // module path of the MoE layer
  TokenLayout layout;
  int64_t experts = 0;  // E
  int64_t slots = 0;    // of each expert and image; slot p belongs to expert p / slots
  at::Tensor valid;     // [N] bool: false for padding; undefined: no padding

  at::Tensor logits;     // [B,S,P] fp32; differentiable
  at::Tensor dispatch;   // [B,S,P] fp32: weights of the tokens in each slot; columns sum to 1 over the image's tokens
  at::Tensor combine;    // [B,S,P] fp32: weights of the slots in each token; rows sum to 1, those of padding are 0
  bool sampled = false;  // as Routing::sampled
};

}  // namespace sparsight
