#include "sparsight/kernels/random/fill.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

// Calls `convert(words, values)` for each block of the stream; a block of four words gives four elements. If `first` is
// not a multiple of four, the first elements of its block are skipped.
template <class T, class Convert>
void fill_blocks(Threads& threads, const RandomRange<T>& range, const RandomStream& stream, const Convert& convert) {
  const auto skip = static_cast<int64_t>(range.first % 4);
  run_ranges(threads, (skip + range.count + 3) / 4, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      T values[4];
      convert(stream.block_at(range.first / 4 + static_cast<uint64_t>(block)), values);
      const int64_t from = std::max<int64_t>(0, 4 * block - skip), to = std::min(range.count, 4 * block - skip + 4);
      std::copy_n(values + (from + skip - 4 * block), to - from, range.out + from);
    }
  });
}

// Box-Muller: two N(0,1) from two words.
template <class T>
void normal_pair(uint32_t a, uint32_t b, T* out) {
  const T uniform = (static_cast<T>(a) + T{1}) * T{0x1p-32};  // (0, 1]: the logarithm is finite
  const T radius = std::sqrt(T{-2} * std::log(uniform));
  const T angle = static_cast<T>(b) * static_cast<T>(0x1p-32 * 6.283185307179586);
  out[0] = radius * std::cos(angle);
  out[1] = radius * std::sin(angle);
}

using Words = std::array<uint32_t, 4>;

}  // namespace

template <class T>
void fill_normal(Threads& threads, const RandomRange<T>& range, const RandomStream& stream, double mean, double std) {
  fill_blocks(threads, range, stream, [=](const Words& words, T* values) {
    normal_pair(words[0], words[1], values);
    normal_pair(words[2], words[3], values + 2);
    for (int i = 0; i < 4; ++i) values[i] = static_cast<T>(mean) + static_cast<T>(std) * values[i];
  });
}

template <class T>
void fill_uniform(Threads& threads, const RandomRange<T>& range, const RandomStream& stream, double low, double high) {
  const T maximum =
      std::nextafter(static_cast<T>(high), static_cast<T>(low));  // 32 bits may round up to `high` in fp32
  fill_blocks(threads, range, stream, [=](const Words& words, T* values) {
    for (int i = 0; i < 4; ++i)
      values[i] = std::min(maximum, static_cast<T>(low + (high - low) * (words[i] * 0x1p-32)));
  });
}

void fill_keep_mask(Threads& threads, const RandomRange<float>& range, const RandomStream& stream, double keep) {
  const double limit = keep * 0x1p32;
  const auto scale = static_cast<float>(1 / keep);
  fill_blocks(threads, range, stream, [=](const Words& words, float* values) {
    for (int i = 0; i < 4; ++i) values[i] = words[i] < limit ? scale : 0;
  });
}

template void fill_normal(Threads&, const RandomRange<float>&, const RandomStream&, double, double);
template void fill_normal(Threads&, const RandomRange<double>&, const RandomStream&, double, double);
template void fill_uniform(Threads&, const RandomRange<float>&, const RandomStream&, double, double);
template void fill_uniform(Threads&, const RandomRange<double>&, const RandomStream&, double, double);

}  // namespace sparsight::cpu
