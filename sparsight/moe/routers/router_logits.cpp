#include "sparsight/moe/routers/router_logits.h"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace sparsight {

at::Tensor router_logits(const at::Tensor& tokens, const at::Tensor& weight) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto type = weight.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  return at::linear(tokens.to(type), weight.to(type));
}

}  // namespace sparsight
