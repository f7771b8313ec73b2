// Losses that compare choices with scores. Letters: moe/axes.md.
#pragma once

#include <string>

#include "sparsight/moe/routing.h"

namespace sparsight {

// The load-balancing loss of GShard (Lepikhin et al. 2020, algorithm 1) and Switch (Fedus et al. 2021, equations 4 to
// 6).

// []: E * sum over experts of f * p, the mean over groups: p the mean over the group's tokens of softmax(noisy logits),
// f the expert's share of the tokens, counted before capacity and constant in the backward pass. 1 at balance; E if
// one expert is the certain first choice of all tokens. Undefined for a router without logits.
//   counts  "first": f counts first choices (GShard, Switch); "mean": all choices, over k tokens (Megatron-LM; at
//           most E/k; "auto" in a call without a router is this); "sum": all choices (Flaxformer; k at balance)
//   form    "switch"; "gshard": (1/E) * sum, as printed in GShard (1/E² at balance); its code has the former
at::Tensor switch_loss(const Routing& routing, const std::string& counts = "mean", const std::string& form = "switch");

// The complementary balance loss of DeepSeek-V3 (section 2.1.2, equations 17 to 20): balance within each sequence, here
// each image.

// []: the mean over images of sum over experts of f * p: p the mean over the image's S tokens of score / sum of scores,
// f = E / (k S) * the number of its tokens with the expert among the k best scores (without balancing bias; constant in
// the backward pass). 1 at balance. Undefined for a router whose scores are not defined or that does not choose a fixed
// number of experts per token.
at::Tensor sequence_balance_loss(const Routing& routing);

// The threshold loss of strictly balanced gating (Shazeer et al. 2017, appendix F, equation 20).

// []: the sum over tokens and experts of (M_th - M_bw) * (score - threshold), where M_th says which scores exceed their
// expert's threshold and M_bw what the batchwise training mask chose. Each term is at least 0; all are 0 where the
// masks agree. Its derivative with respect to a threshold is (rows chosen) - (rows that exceed it), to a score M_th -
// M_bw; the latter only with `score_gradient`, else scores are constants (the paper does not say). With two levels, the
// sum of both levels' losses. Undefined for a routing without thresholds.
at::Tensor threshold_loss(const Routing& routing, bool score_gradient = false);

}  // namespace sparsight
