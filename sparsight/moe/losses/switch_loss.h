// The load-balancing loss of GShard (Lepikhin et al. 2020, algorithm 1) and Switch (Fedus et al. 2021, equations 4 to
// 6). Letters: moe/axes.md.
#pragma once

#include <string>

#include "sparsight/moe/routing.h"

namespace sparsight {

// []: E * sum over experts of f * p, the mean over groups: p the mean over the group's tokens of softmax(noisy logits),
// f the expert's share of the tokens, counted before capacity and constant in the backward pass. 1 at balance; E if
// one expert is the certain first choice of all tokens. Undefined for a router without logits.
//   counts  "first": f counts first choices (GShard, Switch); "mean": all choices, over k tokens (Megatron-LM; at
//           most E/k; "auto" in a call without a router is this); "sum": all choices (Flaxformer; k at balance)
//   form    "switch"; "gshard": (1/E) * sum, as printed in GShard (1/E² at balance); its code has the former
at::Tensor switch_loss(const Routing& routing, const std::string& counts = "mean", const std::string& form = "switch");

}  // namespace sparsight
