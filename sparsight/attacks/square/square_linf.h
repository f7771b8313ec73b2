// The Square attack for linf (Andriushchenko et al. 2020, algorithm 2): vertical stripes of +-epsilon, then squares
// that are moved to the other side of the image's pixels.
#pragma once

#include "sparsight/attacks/square/square_moves.h"

namespace sparsight {

class SquareLinf : public SquareMoves {
 public:
  explicit SquareLinf(const SquareMovesContext& context) : context_(context) {}
  at::Tensor start(const AttackBatch& batch) override;
  // One sign for each channel, and one window, the same for all images.
  at::Tensor propose(const AttackBatch& batch, const at::Tensor& x, int64_t query) override;

 private:
  SquareMovesContext context_;
};

}  // namespace sparsight
