// The Square attack for l2 (Andriushchenko et al. 2020, algorithm 3): bumps with a positive and a negative half. A step
// takes the budget of one square, and what the image has not used of epsilon, for a new bump in another.
#pragma once

#include "sparsight/attacks/square/square_moves.h"

namespace sparsight {

// A bump of [side,side] and Euclidean norm 1: its upper half is positive, the lower one negative, both fall from their
// centre to their edges (section 3.3).
at::Tensor square_bump(int64_t side, const at::Tensor& like);

class SquareL2 : public SquareMoves {
 public:
  explicit SquareL2(const SquareMovesContext& context) : context_(context) {}
  // A grid of five by five bumps, more where more fit in. Raises UsageError for images with a side below 5.
  at::Tensor start(const AttackBatch& batch) override;
  // Windows and the direction of the bump are the same for all images, signs for each channel an image's own.
  at::Tensor propose(const AttackBatch& batch, const at::Tensor& x, int64_t query) override;

 private:
  at::Tensor signed_bump(const AttackBatch& batch, int64_t side, int64_t query) const;
  at::Tensor scaled_to_epsilon(const AttackBatch& batch, const at::Tensor& delta) const;

  SquareMovesContext context_;
};

}  // namespace sparsight
