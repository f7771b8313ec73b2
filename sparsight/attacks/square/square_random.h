// The random numbers of the Square attack.
#pragma once

#include "sparsight/attacks/attack_batch.h"
#include "sparsight/core/random.h"

namespace sparsight {

// Numbers for each query: those of the model from 0 on, negative ones for the start.
class SquareRandom {
 public:
  virtual ~SquareRandom() = default;
  // [B,count] of 1 and -1, the numbers of an image being its own.
  virtual at::Tensor image_signs(int64_t query, const AttackBatch& batch, int64_t count) = 0;
  // [count] of 1 and -1, the same for all images. like: the dtype.
  virtual at::Tensor shared_signs(int64_t query, const at::Tensor& like, int64_t count) = 0;
  // 0 .. n-1, or 0 if n is 0, the same for all images. slot: tells the numbers of a query apart.
  virtual int64_t below(int64_t query, int64_t slot, int64_t n) = 0;
};

// From (seed, restart, query) and, for an image's own, its number: so it matters neither which other images there are
// nor which have already left.
class StreamedSquareRandom : public SquareRandom {
 public:
  StreamedSquareRandom(uint64_t seed, int64_t restart) : seed_(hash_combine(seed, static_cast<uint64_t>(restart))) {}
  at::Tensor image_signs(int64_t query, const AttackBatch& batch, int64_t count) override;
  at::Tensor shared_signs(int64_t query, const at::Tensor& like, int64_t count) override;
  int64_t below(int64_t query, int64_t slot, int64_t n) override;

 private:
  RandomStream stream(const char* what, int64_t query) const;

  uint64_t seed_;
};

}  // namespace sparsight
