// Turns a router's choices into a complete Routing. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// For token-choice routers: sets token, expert, rank, gate and per_token from expert [N,K] int64 (by rank) and gate
// [N,K].
void choose_per_token(Routing& routing, const at::Tensor& expert, const at::Tensor& gate);

// Derives chosen_count, order and offsets from token, expert, rank, gate and kept (everything is kept where it is
// undefined). A router calls this last, and so does everything that changes the choices.
void finish_routing(Routing& routing);

// Leaves only the assignments number `wanted` ([A'] int64, increasing), and finishes the routing again.
void select_assignments(Routing& routing, const at::Tensor& wanted);

// Takes the assignments of padding away, and sets its rows of logits, noise scales and scores to 0: nothing flows back
// into them. valid: [N] bool.
void drop_padding(Routing& routing, const at::Tensor& valid);

}  // namespace sparsight
