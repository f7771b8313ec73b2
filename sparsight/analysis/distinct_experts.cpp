#include "sparsight/analysis/distinct_experts.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"

namespace sparsight {

at::Tensor distinct_experts(const Routing& routing, int64_t images) {
  if (images == 0 || routing.tokens % images != 0)
    fail("layer ", routing.layer, " routed ", routing.tokens, " tokens of ", images,
         " images; the tokens must be a multiple of the images");
  const int64_t per_image = std::max<int64_t>(1, routing.tokens / images);
  const at::Tensor cell = routing.token.floor_divide(per_image).mul(routing.experts).add(routing.expert);
  return at::zeros({images * routing.experts}, routing.token.options().dtype(at::kBool))
      .index_fill_(0, cell.masked_select(routing.kept), true)
      .view({images, routing.experts})
      .sum(1)
      .cpu();
}

}  // namespace sparsight
