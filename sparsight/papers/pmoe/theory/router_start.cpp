#include "sparsight/papers/pmoe/theory/router_start.h"

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight::pmoe {

RouterStart router_start(int64_t patches, int64_t width, int64_t samples, uint64_t seed) {
  if (samples < 1) fail_usage("needs at least 1 random router, got ", samples);
  const double std = router_start_std(patches, width);
  const at::Tensor kernels =
      normal_like(torch::empty({0}, torch::kDouble), {samples, width}, RandomStream(seed, "theory.router_start")) * std;
  const at::Tensor norms = kernels.norm(2, 1);
  RouterStart found;
  found.bound = 1 / static_cast<double>(patches * patches);
  found.within = (norms <= found.bound).to(torch::kDouble).mean().item<double>();
  found.mean_norm = norms.mean().item<double>();
  found.largest_norm = norms.max().item<double>();
  return found;
}

}  // namespace sparsight::pmoe
