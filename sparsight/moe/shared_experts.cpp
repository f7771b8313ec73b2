#include "sparsight/moe/shared_experts.h"

namespace sparsight {

at::Tensor run_shared_experts(const at::Tensor& tokens, Experts& experts, int64_t count, const TokenLayout& layout,
                              const ExpertContext& context) {
  const int64_t n = tokens.size(0);
  // Each expert owns one copy of all tokens.
  const at::Tensor offsets = torch::arange(count + 1, torch::kLong) * n;
  RowContext of_rows{context.mode, context.random, context.path, {}};
  if (experts.is_stochastic(context.mode)) {
    const at::Tensor expert = torch::arange(count, torch::kLong).unsqueeze(1);
    of_rows.number = (token_numbers(layout, context.image) * count + expert).reshape({-1});
  }
  const at::Tensor rows = experts.forward(count == 1 ? tokens : tokens.repeat({count, 1}), offsets, of_rows);
  return count == 1 ? rows : rows.view({count, n, -1}).sum(0);
}

}  // namespace sparsight
