#include "sparsight/moe/losses/superclass.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/losses/token_sums.h"

namespace sparsight {

at::Tensor superclass_loss(const Routing& routing) {
  if (!routing.target.defined() || !routing.clean_logits.defined()) return {};
  const at::Tensor& target = routing.target;
  SPARSIGHT_CHECK(target.dim() == 2 && target.size(1) == routing.experts);
  const int64_t images = target.size(0), rows = routing.clean_logits.size(0);
  SPARSIGHT_CHECK(images == 0 ? rows == 0 : rows % images == 0);
  const int64_t per_image = images == 0 ? 1 : rows / images;
  const at::Tensor of_row = target.to(routing.clean_logits.scalar_type())
                                .unsqueeze(1)
                                .expand({images, per_image, routing.experts})
                                .reshape({rows, routing.experts});
  const at::Tensor entropy = -(of_row * at::log_softmax(routing.clean_logits, 1)).sum(1);
  if (!routing.valid.defined() || rows != routing.tokens) return token_mean(routing, entropy);
  const at::Tensor valid = routing.valid.view({images, per_image}), counts = valid.sum(1);
  const at::Tensor of_image =
      entropy.view({images, per_image}).masked_fill(valid.logical_not(), 0).sum(1) / counts.clamp_min(1);
  return of_image.sum() / (counts > 0).sum().clamp_min(1);
}

}  // namespace sparsight
