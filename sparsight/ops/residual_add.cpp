#include "sparsight/ops/residual_add.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>

#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/ops/cpu/residual_rows.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

constexpr int64_t kDropGrain = 32;  // rows

}  // namespace

at::Tensor dropped(const at::Tensor& y, const BranchDrop& drop) {
  at::Tensor rows = y.reshape({-1, y.size(-1)});
  if (drop.dropout.defined()) rows = rows * dropout_factors(drop.dropout, y.size(-1), y.detach());
  if (drop.row_factor.defined()) rows = rows * drop.row_factor.to(y.options()).unsqueeze(1);
  return rows.view(y.sizes());
}

at::Tensor dropped_rows(const at::Tensor& y, const BranchDrop& drop) {
  if (!drop.defined()) return y;
  if (!y.is_cpu() || y.scalar_type() != at::kFloat) return dropped(y, drop);
  at::Tensor out = at::empty_like(y);
  const int64_t width = y.size(-1);
  const ResidualAdd add{.drop = drop};
  const cpu::ResidualRows rows = cpu::residual_rows(add, width);
  const float* const from = y.const_data_ptr<float>();
  float* const to = out.data_ptr<float>();
  cpu::run_ranges(cpu::torch_threads(), y.numel() / width, kDropGrain, [&](int64_t begin, int64_t end) {
    std::copy(from + begin * width, from + end * width, to + begin * width);
    rows.finish(cpu::kernels(), begin, end - begin, to + begin * width);
  });
  return out;
}

at::Tensor add_residual(const at::Tensor& y, const ResidualAdd& add) {
  const at::Tensor branch = add.drop.defined() ? dropped(y, add.drop) : y;
  return add.residual.defined() ? add.residual + branch : branch;
}

}  // namespace sparsight
