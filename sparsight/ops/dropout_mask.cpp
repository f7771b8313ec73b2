#include "sparsight/ops/dropout_mask.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/kernels/random/dropout_bits.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
DropoutMask dropout_mask(const RandomRows& rows, double keep, const RandomStream& stream) {
  SPARSIGHT_CHECK(keep > 0 && keep < 1);
  const at::Tensor number = rows.number.defined() ? rows.number.to(at::kCPU, at::kLong).contiguous() : at::Tensor();
  SPARSIGHT_CHECK(!number.defined() || number.numel() == rows.rows);
  DropoutMask mask{at::empty({rows.rows, (rows.columns + 7) / 8}, at::kByte), static_cast<float>(1 / keep)};
  cpu::sample_dropout_bits(cpu::torch_threads(),
                           {.rows = rows.rows,
                            .columns = rows.columns,
                            .number = number.defined() ? number.const_data_ptr<int64_t>() : nullptr,
                            .keep = keep,
                            .bits = mask.bits.data_ptr<uint8_t>()},
                           stream);
  return mask;
}

at::Tensor dropout_factors(const DropoutMask& mask, int64_t columns, const at::Tensor& like) {
  const at::Tensor shifts = at::arange(8, mask.bits.options());
  const at::Tensor bits = mask.bits.unsqueeze(2).bitwise_right_shift(shifts).bitwise_and(1);
  return (bits.flatten(1).narrow(1, 0, columns).to(at::kFloat) * mask.scale).to(like.options());
}

}  // namespace sparsight
