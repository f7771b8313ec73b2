#include "sparsight/ops/sort_by_expert.h"

#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/off_cpu.h"

namespace sparsight {

// A stable counting sort: two passes over the assignments.
ExpertGroups sort_by_expert(const at::Tensor& expert, const at::Tensor& kept, int64_t experts) {
  SPARSIGHT_CHECK(expert.dim() == 1 && kept.sizes() == expert.sizes());
  if (!expert.is_cpu()) return off_cpu::sort_by_expert(expert, kept, experts);
  const at::Tensor experts_in = expert.contiguous(), kept_in = kept.contiguous();
  const int64_t* of = experts_in.const_data_ptr<int64_t>();
  const bool* keep = kept_in.const_data_ptr<bool>();
  const int64_t assignments = expert.size(0);

  at::Tensor offsets = at::zeros({experts + 1}, at::kLong);
  int64_t* offset = offsets.data_ptr<int64_t>();
  for (int64_t a = 0; a < assignments; ++a)
    if (keep[a]) ++offset[of[a] + 1];
  for (int64_t e = 0; e < experts; ++e) offset[e + 1] += offset[e];

  at::Tensor order = at::empty({offset[experts]}, at::kLong);
  std::vector<int64_t> cursor(offset, offset + experts);
  int64_t* out = order.data_ptr<int64_t>();
  for (int64_t a = 0; a < assignments; ++a)
    if (keep[a]) out[cursor[static_cast<size_t>(of[a])]++] = a;
  return {order, offsets};
}

at::Tensor count_by_expert(const at::Tensor& expert, int64_t experts) {
  if (!expert.is_cpu()) return off_cpu::count_by_expert(expert, experts);
  const at::Tensor in = expert.contiguous();
  at::Tensor counts = at::zeros({experts}, at::kLong);
  const int64_t* of = in.const_data_ptr<int64_t>();
  int64_t* count = counts.data_ptr<int64_t>();
  for (int64_t a = 0; a < in.numel(); ++a) ++count[of[a]];
  return counts;
}

}  // namespace sparsight
