#include "sparsight/moe/routers/router_logits.h"

#include <ATen/autocast_mode.h>

#include "sparsight/nn/packed_weights.h"
#include "sparsight/ops/grouped_linear.h"

namespace sparsight {

NoAutocast::NoAutocast() : guard_(c10::autocast_dispatch_keyset) {}

at::Tensor router_logits(const at::Tensor& tokens, const at::Tensor& weight, const at::Tensor& bias) {
  const NoAutocast fp32;
  const auto type = weight.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  // One group of rows: torch's GEMM sums the weight gradient in an order that depends on the number of threads.
  return grouped_linear(tokens.to(type), one_group(tokens), weight.to(type).t().unsqueeze(0),
                        bias.defined() ? bias.to(type).unsqueeze(0) : bias);
}

engine::LinearMap linear_map(const at::Tensor& weight, const at::Tensor& bias) {
  return {to_floats(weight), weight.size(1), weight.size(0), /*transposed=*/true, to_floats(bias)};
}

}  // namespace sparsight
