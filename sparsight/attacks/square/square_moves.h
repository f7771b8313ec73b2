// What the Square attack tries: the first point and the next one, for each norm in a file of its own.
#pragma once

#include "sparsight/attacks/attack_batch.h"
#include "sparsight/attacks/square/square_random.h"
#include "sparsight/attacks/threat_model.h"

namespace sparsight {

class SquareMoves {
 public:
  virtual ~SquareMoves() = default;
  // Both return [B,C,H,W] within the threat model.
  virtual at::Tensor start(const AttackBatch& batch) = 0;
  // x: [B,C,H,W], the best points so far. query: from 0.
  virtual at::Tensor propose(const AttackBatch& batch, const at::Tensor& x, int64_t query) = 0;
};

struct SquareMovesContext {
  ThreatModel threat = {};
  double initial_area = 0.8;       // p_init
  SquareRandom* random = nullptr;  // not owned
};

// The share of an image's area that the square of query `query` (from 0) has: `initial`, halved as the query passes 10,
// 50, 200, 500, 1000, 2000, 4000, 6000 and 8000 (Andriushchenko et al. 2020, section 4.1).
double square_area(double initial, int64_t query);

// The side of that square before it is cut to the image: the root of its area in pixels, rounded.
int64_t square_side(double initial, int64_t query, const at::Tensor& x);

}  // namespace sparsight
