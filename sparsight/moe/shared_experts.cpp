#include "sparsight/moe/shared_experts.h"

namespace sparsight {

at::Tensor run_shared_experts(const at::Tensor& tokens, Experts& experts, int64_t count,
                              const std::optional<ExpertRandom>& random) {
  const int64_t n = tokens.size(0);
  // Each expert owns one copy of all tokens.
  const at::Tensor offsets = torch::arange(count + 1, torch::kLong) * n;
  RowDraws draws;
  if (random && experts.draws()) {
    const at::Tensor token = torch::arange(n, torch::kLong) + random->first_token,
                     expert = torch::arange(count, torch::kLong).unsqueeze(1);
    draws = {random->random, random->path, (token * count + expert).reshape({-1})};
  }
  const at::Tensor rows = experts.apply_rows(count == 1 ? tokens : tokens.repeat({count, 1}), offsets, draws);
  return count == 1 ? rows : rows.view({count, n, -1}).sum(0);
}

}  // namespace sparsight
