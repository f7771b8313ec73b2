#include "sparsight/ops/dropout_mask.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/tasks.h"

namespace sparsight {
namespace {

// A word below this keeps its element, as in keep_mask_rows().
uint64_t limit_of(double keep) { return static_cast<uint64_t>(std::ceil(keep * 0x1p32)); }

void sample_row(const RandomStream& stream, uint64_t first, int64_t columns, uint64_t limit, uint8_t* bits) {
  for (int64_t c = 0; c < columns; ++c)
    bits[c / 8] |= static_cast<uint8_t>((stream.bits_at(first + static_cast<uint64_t>(c)) < limit ? 1 : 0) << (c % 8));
}

}  // namespace

DropoutMask dropout_mask(const RandomRows& rows, double keep, const RandomStream& stream) {
  SPARSIGHT_CHECK(keep > 0 && keep < 1);
  const int64_t bytes = (rows.columns + 7) / 8;
  const bool in_blocks = rows.columns % 8 == 0;  // rows begin where blocks of the generator do
  const at::Tensor number = rows.number.defined() ? rows.number.to(at::kCPU, at::kLong).contiguous() : at::Tensor();
  SPARSIGHT_CHECK(!number.defined() || number.numel() == rows.rows);
  const int64_t* const numbers = number.defined() ? number.const_data_ptr<int64_t>() : nullptr;
  const auto options = at::TensorOptions(at::kByte);
  DropoutMask mask{in_blocks ? at::empty({rows.rows, bytes}, options) : at::zeros({rows.rows, bytes}, options),
                   static_cast<float>(1 / keep)};
  uint8_t* const bits = mask.bits.data_ptr<uint8_t>();
  const uint64_t limit = limit_of(keep);
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, rows.columns));
  cpu::run_ranges(rows.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const uint64_t first = static_cast<uint64_t>(numbers ? numbers[r] : r) * static_cast<uint64_t>(rows.columns);
      if (in_blocks)
        cpu::kernels().random_bits({stream.key(), stream.step(), first / 4, rows.columns / 4, limit, bits + r * bytes});
      else
        sample_row(stream, first, rows.columns, limit, bits + r * bytes);
    }
  });
  return mask;
}

at::Tensor dropout_factors(const DropoutMask& mask, int64_t columns, const at::Tensor& like) {
  const at::Tensor shifts = at::arange(8, mask.bits.options());
  const at::Tensor bits = mask.bits.unsqueeze(2).bitwise_right_shift(shifts).bitwise_and(1);
  return (bits.flatten(1).narrow(1, 0, columns).to(at::kFloat) * mask.scale).to(like.options());
}

}  // namespace sparsight
