// Shared by routers whose experts choose tokens. Letters: moe/axes.md; G groups of T tokens, N = G * T.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// scores: [N,E]. valid: [N] bool, or undefined. Returns [E,G,T] int64: for each expert and group the group's tokens
// (0..T-1) by decreasing score. Equal scores: the lowest token first. NaN ranks after everything else, padding after
// NaN.
at::Tensor ranked_tokens(const at::Tensor& scores, int64_t groups, const at::Tensor& valid);

// Sets token, expert and rank: each expert takes the first count[e,g] tokens of its ranking. ranked: [E,G,T]. count:
// int64, [E,G] or broadcastable to it.
void choose_per_expert(Routing& routing, const at::Tensor& ranked, const at::Tensor& count);

// dense: [N,E]. Returns [A]: its elements at the assignments. Differentiable.
at::Tensor at_assignments(const Routing& routing, const at::Tensor& dense);

// values: [A] differentiable. group: [A] int64, 0..groups-1. Returns [A]: the softmax over the members of each group.
at::Tensor softmax_by_group(const at::Tensor& values, const at::Tensor& group, int64_t groups);

// Number of tokens that are not padding. valid: [N] bool, or undefined.
int64_t valid_tokens(const at::Tensor& valid, int64_t tokens);

}  // namespace sparsight
