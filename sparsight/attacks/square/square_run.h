// One run of the Square attack (Andriushchenko et al. 2020, "Square attack: a query-efficient black-box adversarial
// attack via random search"): it changes random squares and keeps what lowers the margin. It needs no gradients, so it
// shows where a model only hides them.
#pragma once

#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/square/square_moves.h"

namespace sparsight {

struct SquareRunOptions {
  int64_t queries = 5000;
  int64_t passes = 1;  // of a randomised model, whose margins are averaged in each query
};

struct SquareRun {
  at::Tensor pixels;  // [B,C,H,W]: of the smallest margin, or misclassified
  at::Tensor margin;  // [B]: z_y minus the largest other logit; of a targeted attack that one minus z_target
  at::Tensor fooled;  // [B] bool: misclassified, or as the target
};

// At most 1 + queries queries of each image, each of `passes` passes. One leaves once its margin is 0 or less; what the
// others go through does not depend on that.
SquareRun run_square(AttackedModel& model, const AttackBatch& batch, const AttackContext& context,
                     const SquareRunOptions& options, SquareMoves& moves, uint64_t first);

}  // namespace sparsight
