#include "sparsight/moe/losses/separation.h"

#include <algorithm>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/losses/token_sums.h"

namespace sparsight {
namespace {

// [E] int64: the class that each expert's own class is separated from.
at::Tensor partners(int64_t experts, const at::Tensor& like) {
  std::vector<int64_t> partner;
  for (int64_t e = 0; e < experts; ++e) partner.push_back((e ^ 1) < experts ? e ^ 1 : 0);
  return at::tensor(partner, at::kLong).to(like.device());
}

// Number of images with a token that is not padding.
double counted_images(const Routing& routing, int64_t images) {
  if (!routing.valid.defined()) return static_cast<double>(images);
  return routing.valid.reshape({images, -1}).any(1).sum().item<double>();
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
  const at::Tensor side = target - target.index_select(1, partners(routing.experts, target));  // [B,E]
  const at::Tensor of_row = side.to(logits.scalar_type())
                                .unsqueeze(1)
                                .expand({images, rows / images, routing.experts})
                                .reshape({rows, routing.experts});
  return -ordered_sum((of_row * logits).sum(1)) / std::max(1.0, counted_images(routing, images));
}

}  // namespace sparsight
