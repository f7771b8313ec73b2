#include "sparsight/ops/random_fill.h"

#include <algorithm>
#include <cmath>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// Calls `convert(words, values)` for each block of the stream; one block of four words makes four elements.
template <class T, class Convert>
void fill_blocks(T* out, int64_t count, const RandomStream& stream, const Convert& convert) {
  at::parallel_for(0, (count + 3) / 4, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      T values[4];
      convert(stream.block_at(static_cast<uint64_t>(block)), values);
      std::copy_n(values, std::min<int64_t>(4, count - 4 * block), out + 4 * block);
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

template <class Convert>
void fill(at::Tensor& out, const RandomStream& stream, const Convert& convert) {
  SPARSIGHT_CHECK(out.is_contiguous() && out.is_cpu());
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "fill",
                             [&] { fill_blocks(out.data_ptr<scalar_t>(), out.numel(), stream, convert); });
}

}  // namespace

void fill_normal(at::Tensor& out, const RandomStream& stream, double mean, double std) {
  fill(out, stream, [=]<class T>(const std::array<uint32_t, 4>& words, T* values) {
    normal_pair(words[0], words[1], values);
    normal_pair(words[2], words[3], values + 2);
    for (int i = 0; i < 4; ++i) values[i] = static_cast<T>(mean) + static_cast<T>(std) * values[i];
  });
}

void fill_uniform(at::Tensor& out, const RandomStream& stream, double low, double high) {
  fill(out, stream, [=]<class T>(const std::array<uint32_t, 4>& words, T* values) {
    for (int i = 0; i < 4; ++i) values[i] = static_cast<T>(low + (high - low) * (words[i] * 0x1p-32));
  });
}

at::Tensor normal_like(const at::Tensor& like, at::IntArrayRef sizes, const RandomStream& stream) {
  const auto type = like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor out = at::empty(sizes, type);
  fill_normal(out, stream);
  return out.to(like.device());
}

at::Tensor keep_mask_like(const at::Tensor& like, at::IntArrayRef sizes, double keep, const RandomStream& stream) {
  at::Tensor out = at::empty(sizes, at::kFloat);
  const double limit = keep * 0x1p32;
  const float scale = static_cast<float>(1 / keep);
  fill(out, stream, [=]<class T>(const std::array<uint32_t, 4>& words, T* values) {
    for (int i = 0; i < 4; ++i) values[i] = words[i] < limit ? static_cast<T>(scale) : T{0};
  });
  return out.to(like.options());
}

}  // namespace sparsight
