#include "sparsight/moe/shared_experts.h"

namespace sparsight {

at::Tensor run_shared_experts(const at::Tensor& tokens, Experts& experts, int64_t count) {
  const int64_t n = tokens.size(0);
  // Each expert owns one copy of all tokens.
  const at::Tensor offsets = torch::arange(count + 1, torch::kLong) * n;
  const at::Tensor rows = experts.apply_rows(count == 1 ? tokens : tokens.repeat({count, 1}), offsets);
  return count == 1 ? rows : rows.view({count, n, -1}).sum(0);
}

}  // namespace sparsight
