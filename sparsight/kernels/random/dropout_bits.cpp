#include "sparsight/kernels/random/dropout_bits.h"

#include <algorithm>
#include <cmath>

#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

void sample_row(const RandomStream& stream, uint64_t first, int64_t columns, uint64_t limit, uint8_t* bits) {
  std::fill_n(bits, (columns + 7) / 8, uint8_t{0});
  for (int64_t c = 0; c < columns; ++c)
    bits[c / 8] |= static_cast<uint8_t>((stream.bits_at(first + static_cast<uint64_t>(c)) < limit ? 1 : 0) << (c % 8));
}

}  // namespace

void sample_dropout_bits(Threads& threads, const DropoutBits& mask, const RandomStream& stream) {
  const int64_t columns = mask.columns, bytes = (columns + 7) / 8;
  const bool in_blocks = columns % 8 == 0;  // rows begin where blocks of the generator do
  const auto limit = static_cast<uint64_t>(std::ceil(mask.keep * 0x1p32));  // a word below this keeps its element
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns));
  run_ranges(threads, mask.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto row = static_cast<uint64_t>(mask.number ? mask.number[r] : r);
      const uint64_t first = row * static_cast<uint64_t>(columns);
      uint8_t* const bits = mask.bits + r * bytes;
      if (in_blocks)
        training_kernels().random_bits({stream.key(), stream.step(), first / 4, columns / 4, limit, bits});
      else
        sample_row(stream, first, columns, limit, bits);
    }
  });
}

}  // namespace sparsight::cpu
