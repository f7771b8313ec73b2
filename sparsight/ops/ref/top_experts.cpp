#include "sparsight/ops/ref/top_experts.h"

#include <limits>

#include <ATen/ops/argsort.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>

namespace sparsight::ref {

at::Tensor top_experts(const at::Tensor& scores, int64_t k) {
  const at::Tensor nan = at::isnan(scores.detach());
  const at::Tensor plain = scores.detach().masked_fill(nan, -std::numeric_limits<double>::infinity());
  const at::Tensor by_score = at::argsort(plain, /*stable=*/true, /*dim=*/1, /*descending=*/true);
  // Moves NaN behind -inf, which it was equal to above.
  const at::Tensor nan_last = at::argsort(nan.gather(1, by_score).to(at::kLong), /*stable=*/true, 1, false);
  return by_score.gather(1, nan_last).narrow(1, 0, k).contiguous();
}

}  // namespace sparsight::ref
