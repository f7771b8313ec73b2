#include "sparsight/attacks/square/square_random.h"

#include <ATen/TensorOperators.h>

#include "sparsight/ops/random_fill.h"

namespace sparsight {
namespace {

at::Tensor to_signs(const at::Tensor& uniform) { return (uniform >= 0.5).to(uniform.scalar_type()) * 2 - 1; }

}  // namespace

RandomStream StreamedSquareRandom::stream(const char* what, int64_t query) const {
  return RandomStream(seed_, what, static_cast<uint64_t>(query));
}

at::Tensor StreamedSquareRandom::image_signs(int64_t query, const AttackBatch& batch, int64_t count) {
  const RandomRows rows{batch.pixels.size(0), count, batch.image};
  return to_signs(uniform_rows(batch.pixels, rows, stream("attack.square.image_signs", query)));
}

at::Tensor StreamedSquareRandom::shared_signs(int64_t query, const at::Tensor& like, int64_t count) {
  return to_signs(uniform_like(like, {count}, stream("attack.square.shared_signs", query)));
}

int64_t StreamedSquareRandom::below(int64_t query, int64_t slot, int64_t n) {
  if (n == 0) return 0;
  return RandomStream(hash_combine(seed_, static_cast<uint64_t>(slot)), "attack.square.below",
                      static_cast<uint64_t>(query))
      .below(n);
}

}  // namespace sparsight
