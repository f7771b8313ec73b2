// Completes a Routing from a router's choices. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// For token-choice routers: sets token, expert, rank, gate and per_token from expert [N,K] int64 (by rank) and gate
// [N,K].
void choose_per_token(Routing& routing, const at::Tensor& expert, const at::Tensor& gate);

// Derives chosen_count, order and offsets from token, expert, rank, gate and kept (undefined: everything is
// kept). Call it last in a router, and after any change to the assignments.
void finish_routing(Routing& routing);

// Drops assignments of a finished routing. kept: [A] bool, true for none that was dropped before.
void keep_only(Routing& routing, const at::Tensor& kept);

// Keeps only the assignments with the indices `wanted` ([A'] int64, increasing), then calls finish_routing().
void select_assignments(Routing& routing, const at::Tensor& wanted);

// The same decision without kept assignments beyond the first `count` tokens of each image, for a caller that reads no
// other outputs. A soft routing stays as it is.
Routing with_first_tokens(Routing routing, int64_t count);

// Removes the assignments of padding and sets its rows of logits, noise scales and scores to 0, without gradients.
// valid: [N] bool.
void drop_padding(Routing& routing, const at::Tensor& valid);

}  // namespace sparsight
