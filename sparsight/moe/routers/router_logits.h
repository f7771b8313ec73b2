// The linear layer of most routers, in fp32.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/types.h>

#include "sparsight/engine/routers/logits.h"

namespace sparsight {

// While it lives, autocast is off: choices must not depend on the precision that the experts compute in.
class NoAutocast {
 public:
  NoAutocast();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

// tokens: [N,D], weight: [E,D], bias: [E] or undefined. Returns [N,E] in fp32 (fp64 for fp64 weights), also under
// autocast. Differentiable once, bitwise reproducible for any number of threads (ops/grouped_linear.h).
at::Tensor router_logits(const at::Tensor& tokens, const at::Tensor& weight, const at::Tensor& bias = {});

// The same map without tensors.
engine::LinearMap linear_map(const at::Tensor& weight, const at::Tensor& bias = {});

}  // namespace sparsight
