#include "sparsight/ops/sort_by_expert.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/kernels/routing/sort_by_expert.h"
#include "sparsight/ops/off_cpu.h"

namespace sparsight {

ExpertGroups sort_by_expert(const at::Tensor& expert, const at::Tensor& kept, int64_t experts) {
  SPARSIGHT_CHECK(expert.dim() == 1 && kept.sizes() == expert.sizes());
  if (!expert.is_cpu()) return off_cpu::sort_by_expert(expert, kept, experts);
  const at::Tensor experts_in = expert.contiguous(), kept_in = kept.contiguous();
  const int64_t* const of = experts_in.const_data_ptr<int64_t>();
  const bool* const keep = kept_in.const_data_ptr<bool>();
  const at::Tensor offsets = at::empty({experts + 1}, at::kLong);
  int64_t* const offset = offsets.data_ptr<int64_t>();
  cpu::expert_offsets(of, keep, expert.size(0), experts, offset);
  const at::Tensor order = at::empty({offset[experts]}, at::kLong);
  cpu::order_by_expert(of, keep, expert.size(0), experts, offset, order.data_ptr<int64_t>());
  return {order, offsets};
}

at::Tensor count_by_expert(const at::Tensor& expert, int64_t experts) {
  if (!expert.is_cpu()) return off_cpu::count_by_expert(expert, experts);
  const at::Tensor in = expert.contiguous();
  at::Tensor counts = at::zeros({experts}, at::kLong);
  cpu::count_by_expert(in.const_data_ptr<int64_t>(), in.numel(), counts.data_ptr<int64_t>());
  return counts;
}

}  // namespace sparsight
