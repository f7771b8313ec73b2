#include "sparsight/moe/routing.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace sparsight {

Routing detached(Routing routing) {
  for (at::Tensor* tensor :
       {&routing.clean_logits, &routing.noisy_logits, &routing.noise_scale, &routing.scores, &routing.threshold,
        &routing.priority, &routing.gate, &routing.smooth_load, &routing.target})
    if (tensor->defined()) *tensor = tensor->detach();
  routing.losses.clear();
  if (routing.groups) routing.groups = std::make_shared<const Routing>(detached(*routing.groups));
  return routing;
}

void set_consecutive_groups(Routing& routing, int64_t size) {
  routing.group = at::Tensor();
  routing.group_count = 1;
  if (size == 0 || routing.tokens <= size) return;
  routing.group = at::arange(routing.tokens, at::kLong).floor_divide(size);
  routing.group_count = (routing.tokens + size - 1) / size;
}

at::Tensor group_of_token(const Routing& routing) {
  const auto options = routing.expert.options().dtype(at::kLong);
  return routing.group.defined() ? routing.group.to(options.device()) : at::zeros({routing.tokens}, options);
}

at::Tensor group_sizes(const Routing& routing) {
  const auto options = routing.expert.options().dtype(at::kLong);
  const at::Tensor one = routing.valid.defined() ? routing.valid.to(at::kLong) : at::ones({routing.tokens}, options);
  return at::zeros({routing.group_count}, options).index_add_(0, group_of_token(routing), one);
}

at::Tensor token_numbers(const TokenLayout& layout, const at::Tensor& image) {
  const int64_t tokens = layout.images * layout.per_image;
  if (!image.defined()) return at::arange(tokens, at::kLong);
  return (image.unsqueeze(1) * layout.per_image + at::arange(layout.per_image, at::kLong)).reshape({-1});
}

}  // namespace sparsight
