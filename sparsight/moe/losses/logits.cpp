#include "sparsight/moe/losses/logits.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/softmax.h>

#include "sparsight/moe/losses/token_sums.h"

namespace sparsight {

at::Tensor entropy_loss(const Routing& routing) {
  if (!routing.clean_logits.defined()) return {};
  const at::Tensor log_p = at::log_softmax(routing.clean_logits, 1);
  return token_mean(routing, -(log_p.exp() * log_p).sum(1));
}

at::Tensor marginal_entropy_loss(const Routing& routing) {
  if (!routing.clean_logits.defined()) return {};
  const at::Tensor sum = without_padding(routing, at::softmax(routing.clean_logits, 1)).sum(0);
  const at::Tensor total = sum.sum().detach();  // the number of tokens
  if (total.item<double>() == 0) return sum.sum();
  const at::Tensor mean = sum / total;
  // clamp: 0 log 0 is 0, also for the gradient.
  return std::log(static_cast<double>(routing.experts)) + (mean * mean.clamp_min(1e-30).log()).sum();
}

at::Tensor mutual_information_loss(const Routing& routing) {
  if (!routing.clean_logits.defined()) return {};
  return entropy_loss(routing) + marginal_entropy_loss(routing);
}

at::Tensor router_z_loss(const Routing& routing) {
  if (!routing.clean_logits.defined()) return {};
  return token_mean(routing, at::logsumexp(routing.clean_logits, {1}).square());
}

}  // namespace sparsight
