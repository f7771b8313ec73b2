// What a router decided, as a plain value. Dispatch, losses, statistics, plots and serving only read it.
// Letters: moe/axes.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// How the N tokens of a pool are laid out over images, so that a routing can be drawn on them.
struct TokenLayout {
  int64_t images = 0;       // B
  int64_t per_image = 0;    // S; B * S = N
  int64_t prefix = 0;       // leading tokens of each image that are no patch (class token)
  int64_t grid_height = 0;  // patches; grid_height * grid_width = S - prefix, or 0 where tokens are no grid
  int64_t grid_width = 0;
};

// Any router's decision in one form: a list of A assignments (token, expert), in order of token and then of rank for
// token-choice routers, in order of expert and then of rank for expert-choice ones.
struct Routing {
  std::string layer;  // module path of the MoE layer, "blocks.3.mlp"
  TokenLayout layout;
  int64_t tokens = 0;   // N
  int64_t experts = 0;  // E

  at::Tensor clean_logits;  // [N,E] fp32, before noise; differentiable
  at::Tensor noisy_logits;  // [N,E] fp32, what selection saw; the same tensor as clean_logits without noise
  at::Tensor scores;        // [N,E] fp32, the router's dense scores (softmax, sigmoid, cosine); differentiable
  double noise_std = 0;     // of a fixed-noise router; 0 without noise

  // Chosen: before capacity.
  at::Tensor token;         // [A] int64, 0..N-1
  at::Tensor expert;        // [A] int64, 0..E-1
  at::Tensor rank;          // [A] int64, 0 for a token's (or an expert's) first choice
  at::Tensor gate;          // [A] fp32, weight of the expert's output; differentiable
  at::Tensor chosen_count;  // [E] int64
  int64_t per_token = 0;    // K where every token has exactly K assignments in token order, else 0

  // Kept: after capacity. Assignments dropped by capacity contribute nothing.
  at::Tensor kept;     // [A] bool
  at::Tensor order;    // [A_kept] int64: kept assignments grouped by expert, ties in assignment order
  at::Tensor offsets;  // [E+1] int64: expert e owns order[offsets[e] .. offsets[e+1])
};

}  // namespace sparsight
