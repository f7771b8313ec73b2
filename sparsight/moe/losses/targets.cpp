#include "sparsight/moe/losses/targets.h"

#include <algorithm>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

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

namespace {

// [E] int64: the class that each expert's own class is separated from.
at::Tensor partners(int64_t experts, const at::Tensor& like) {
  std::vector<int64_t> partner;
  for (int64_t e = 0; e < experts; ++e) partner.push_back((e ^ 1) < experts ? e ^ 1 : 0);
  return at::tensor(partner, at::kLong).to(like.device());
}

// [E]: the number of images of each expert's class and of its partner's, without images of padding alone.
at::Tensor images_of_pairs(const Routing& routing, const at::Tensor& pair) {
  const at::Tensor counted =
      routing.valid.defined()
          ? at::mul(pair, routing.valid.reshape({pair.size(0), -1}).any(1, /*keepdim=*/true).to(pair.scalar_type()))
          : pair;
  return counted.sum(0);
}

}  // namespace

at::Tensor separation_loss(const Routing& routing) {
  if (!routing.target.defined() || !routing.clean_logits.defined()) return {};
  const at::Tensor& target = routing.target;
  SPARSIGHT_CHECK(target.dim() == 2 && target.size(1) == routing.experts);
  const int64_t images = target.size(0), rows = routing.clean_logits.size(0);
  SPARSIGHT_CHECK(images == 0 ? rows == 0 : rows % images == 0);
  const at::Tensor logits = without_padding(routing, routing.clean_logits);
  if (images == 0 || rows == 0) return logits.sum();
  const at::Tensor own = target.to(logits.scalar_type()), other = own.index_select(1, partners(routing.experts, own));
  const at::Tensor images_of_pair = images_of_pairs(routing, own + other);
  const at::Tensor side = (own - other) / at::where(images_of_pair > 0, images_of_pair, at::ones_like(images_of_pair));
  const at::Tensor of_row =
      side.unsqueeze(1).expand({images, rows / images, routing.experts}).reshape({rows, routing.experts});
  return -ordered_sum((of_row * logits).sum(1));
}

}  // namespace sparsight
