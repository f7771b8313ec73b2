// The linear map of most routers, kept in fp32.
#pragma once

#include <torch/types.h>

namespace sparsight {

// tokens: [N,D], weight: [E,D]. Returns [N,E] in fp32 (fp64 for fp64 weights), also under autocast: choices must not
// depend on the precision that the experts compute in.
at::Tensor router_logits(const at::Tensor& tokens, const at::Tensor& weight);

}  // namespace sparsight
