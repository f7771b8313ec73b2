#include "sparsight/ops/top_experts.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/kernels/routing/top_experts.h"
#include "sparsight/ops/off_cpu.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {

at::Tensor top_experts(const at::Tensor& scores, int64_t k) {
  SPARSIGHT_CHECK(scores.dim() == 2 && k >= 1 && k <= scores.size(1));
  if (!scores.is_cpu()) return off_cpu::top_experts(scores, k);
  const at::Tensor rows = scores.detach().contiguous();
  at::Tensor chosen = at::empty({rows.size(0), k}, at::kLong);
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "top_experts", [&] {
    cpu::top_experts(cpu::torch_threads(), rows.const_data_ptr<scalar_t>(), rows.size(0), rows.size(1), k,
                     chosen.data_ptr<int64_t>());
  });
  return chosen;
}

}  // namespace sparsight
