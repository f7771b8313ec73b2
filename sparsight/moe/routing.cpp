#include "sparsight/moe/routing.h"

#include <algorithm>

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
  if (routing.groups) routing.groups = std::make_shared<const Routing>(detached(*routing.groups));
  return routing;
}

int64_t group_count(const Routing& routing) {
  if (routing.group_tokens == 0) return 1;
  return std::max<int64_t>(1, (routing.tokens + routing.group_tokens - 1) / routing.group_tokens);
}

at::Tensor group_of_token(const Routing& routing) {
  const auto options = routing.expert.options().dtype(at::kLong);
  if (routing.group_tokens == 0) return at::zeros({routing.tokens}, options);
  return at::arange(routing.tokens, options).floor_divide(routing.group_tokens);
}

at::Tensor group_sizes(const Routing& routing) {
  const auto options = routing.expert.options().dtype(at::kLong);
  const at::Tensor one = routing.valid.defined() ? routing.valid.to(at::kLong) : at::ones({routing.tokens}, options);
  return at::zeros({group_count(routing)}, options).index_add_(0, group_of_token(routing), one);
}

}  // namespace sparsight
