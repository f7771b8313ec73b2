#include "sparsight/moe/routers/router_logits.h"

#include <ATen/autocast_mode.h>

namespace sparsight {

NoAutocast::NoAutocast() : guard_(c10::autocast_dispatch_keyset) {}

at::Tensor router_logits(const at::Tensor& tokens, const at::Tensor& weight, const at::Tensor& bias) {
  const NoAutocast fp32;
  const auto type = weight.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  return at::linear(tokens.to(type), weight.to(type), bias.defined() ? bias.to(type) : bias);
}

}  // namespace sparsight
