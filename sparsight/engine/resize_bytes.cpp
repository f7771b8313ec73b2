#include "sparsight/engine/resize_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "sparsight/kernels/kernels.h"

// The loops over the pixels are compiled once for each instruction-set level that they gain from.
#define SPARSIGHT_INLINE [[gnu::always_inline]] inline

namespace sparsight::engine {
namespace {

constexpr int kBits = 22;       // of a weight's fraction
constexpr int64_t kBlock = 64;  // pixels that are summed up together

// Result i is the sum over k < count[i] of weights[i * most + k] times input first[i] + k, over 2^kBits.
struct Taps {
  std::vector<int64_t> first, count;
  std::vector<int32_t> weights;
  int64_t most = 0;
};

double filter_at(double x, bool bicubic) {
  x = std::fabs(x);
  if (!bicubic) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.5;  // Keys 1981
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

Taps resize_taps(int64_t from, int64_t to, bool bicubic) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), stretch = std::max(1.0, scale);
  const double support = (bicubic ? 2 : 1) * stretch;
  Taps taps;
  taps.most = 2 * static_cast<int64_t>(std::ceil(support)) + 1;
  taps.weights.resize(static_cast<size_t>(to * taps.most));
  std::vector<double> exact(static_cast<size_t>(taps.most));
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
    const int64_t count = std::min(from, static_cast<int64_t>(centre + support + 0.5)) - first;
    double sum = 0;
    for (int64_t k = 0; k < count; ++k)
      sum += exact[k] = filter_at((static_cast<double>(k + first) - centre + 0.5) * (1 / stretch), bicubic);
    for (int64_t k = 0; k < count; ++k)
      taps.weights[i * taps.most + k] = static_cast<int32_t>(std::lround(exact[k] / sum * (1 << kBits)));
    taps.first.push_back(first), taps.count.push_back(count);
  }
  return taps;
}

template <int kRows>
SPARSIGHT_INLINE void add_rows(const uint8_t* __restrict in, int64_t stride, const int32_t* weights,
                               int32_t* __restrict sums) {
  int32_t w[kRows];
  for (int k = 0; k < kRows; ++k) w[k] = weights[k];
  for (int64_t j = 0; j < kBlock; ++j) {
    int32_t sum = 0;
    for (int k = 0; k < kRows; ++k) sum += w[k] * in[k * stride + j];
    sums[j] += sum;
  }
}

// The weighted sum of `count` rows of kBlock bytes.
SPARSIGHT_INLINE void weigh_rows(const uint8_t* in, int64_t stride, const int32_t* weights, int64_t count,
                                 uint8_t* __restrict out) {
  alignas(64) int32_t sums[kBlock];
  for (int32_t& sum : sums) sum = 1 << (kBits - 1);
  int64_t k = 0;
  for (; k + 4 <= count; k += 4) add_rows<4>(in + k * stride, stride, weights + k, sums);
  in += k * stride, weights += k;
  if (count - k == 1) add_rows<1>(in, stride, weights, sums);
  if (count - k == 2) add_rows<2>(in, stride, weights, sums);
  if (count - k == 3) add_rows<3>(in, stride, weights, sums);
  for (int64_t j = 0; j < kBlock; ++j) out[j] = static_cast<uint8_t>(std::clamp(sums[j] >> kBits, 0, 255));
}

using Bytes16 = uint8_t __attribute__((vector_size(16)));

SPARSIGHT_INLINE void transpose_16x16(const uint8_t* in, int64_t in_stride, uint8_t* out, int64_t out_stride) {
  Bytes16 rows[16], mixed[16];
  for (int i = 0; i < 16; ++i) std::memcpy(&rows[i], in + i * in_stride, 16);
  for (int round = 0; round < 4; ++round) {  // four perfect shuffles of all bytes
    for (int i = 0; i < 8; ++i) {
      const Bytes16 a = rows[i], b = rows[i + 8];
      mixed[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      mixed[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::memcpy(rows, mixed, sizeof rows);
  }
  for (int i = 0; i < 16; ++i) std::memcpy(out + i * out_stride, &rows[i], 16);
}

// in: [height,width] -> out: [width,height]
SPARSIGHT_INLINE void transpose(const uint8_t* in, int64_t in_stride, int64_t height, int64_t width, uint8_t* out,
                                int64_t out_stride) {
  int64_t y = 0;
  for (; y + 16 <= height; y += 16) {
    int64_t x = 0;
    for (; x + 16 <= width; x += 16)
      transpose_16x16(in + y * in_stride + x, in_stride, out + x * out_stride + y, out_stride);
    for (; x < width; ++x)
      for (int64_t i = y; i < y + 16; ++i) out[x * out_stride + i] = in[i * in_stride + x];
  }
  for (; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) out[x * out_stride + y] = in[y * in_stride + x];
}

// One plane of an image. The results of a pass along x are `stride` bytes apart, a multiple of kBlock.
struct Plane {
  const uint8_t* in;
  int64_t in_stride, height, width;
  uint8_t* out;
  int64_t stride;
};

// Takes kBlock rows at a time and turns them, so that the sums run over rows here too. columns, weighed: room for
// kBlock * width bytes of the input and of the result.
SPARSIGHT_INLINE void along_x(const Plane& plane, const Taps& taps, uint8_t* columns, uint8_t* weighed) {
  const int64_t results = std::ssize(taps.first);
  for (int64_t y = 0; y < plane.height; y += kBlock) {
    const int64_t height = std::min(kBlock, plane.height - y);
    transpose(plane.in + y * plane.in_stride, plane.in_stride, height, plane.width, columns, kBlock);
    for (int64_t i = 0; i < results; ++i)
      weigh_rows(columns + taps.first[i] * kBlock, kBlock, taps.weights.data() + i * taps.most, taps.count[i],
                 weighed + i * kBlock);
    transpose(weighed, kBlock, results, height, plane.out + y * plane.stride, plane.stride);
  }
}

// in_stride is a multiple of kBlock, stride is the width.
SPARSIGHT_INLINE void along_y(const Plane& plane, const Taps& taps) {
  const int64_t results = std::ssize(taps.first);
  for (int64_t i = 0; i < results; ++i) {
    const uint8_t* in = plane.in + taps.first[i] * plane.in_stride;
    const int32_t* weights = taps.weights.data() + i * taps.most;
    uint8_t* out = plane.out + i * plane.stride;
    int64_t x = 0;
    for (; x + kBlock <= plane.width; x += kBlock) weigh_rows(in + x, plane.in_stride, weights, taps.count[i], out + x);
    if (x == plane.width) continue;
    uint8_t last[kBlock];
    weigh_rows(in + x, plane.in_stride, weights, taps.count[i], last);
    std::copy_n(last, plane.width - x, out + x);
  }
}

struct Passes {
  void (*along_x)(const Plane&, const Taps&, uint8_t* columns, uint8_t* weighed);
  void (*along_y)(const Plane&, const Taps&);
};

void along_x_baseline(const Plane& p, const Taps& t, uint8_t* c, uint8_t* w) { along_x(p, t, c, w); }
void along_y_baseline(const Plane& p, const Taps& t) { along_y(p, t); }

#if defined(__x86_64__)
#define SPARSIGHT_AVX2 [[gnu::target("avx2")]]
#define SPARSIGHT_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]

SPARSIGHT_AVX2 void along_x_avx2(const Plane& p, const Taps& t, uint8_t* c, uint8_t* w) { along_x(p, t, c, w); }
SPARSIGHT_AVX2 void along_y_avx2(const Plane& p, const Taps& t) { along_y(p, t); }
SPARSIGHT_AVX512 void along_x_avx512(const Plane& p, const Taps& t, uint8_t* c, uint8_t* w) { along_x(p, t, c, w); }
SPARSIGHT_AVX512 void along_y_avx512(const Plane& p, const Taps& t) { along_y(p, t); }
#endif

Passes fastest_passes() {
#if defined(__x86_64__)
  if (cpu::kernels().vector_bytes >= 64) return {along_x_avx512, along_y_avx512};
  if (cpu::kernels().vector_bytes >= 32) return {along_x_avx2, along_y_avx2};
#endif
  return {along_x_baseline, along_y_baseline};
}

std::unique_ptr<uint8_t[]> room(int64_t bytes) {
  return std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(bytes));
}

}  // namespace

void resize_bytes(const ByteImageView& image, int64_t height, int64_t width, bool bicubic, uint8_t* out) {
  const int64_t stride = (width + kBlock - 1) / kBlock * kBlock;
  const std::unique_ptr<uint8_t[]> narrow = room(image.height * stride);
  const std::unique_ptr<uint8_t[]> columns = room(image.width * kBlock), weighed = room(width * kBlock);
  const Taps across = resize_taps(image.width, width, bicubic), down = resize_taps(image.height, height, bicubic);
  const Passes passes = fastest_passes();
  for (int64_t c = 0; c < image.channels; ++c, out += height * width) {
    passes.along_x(
        {image.bytes + c * image.plane_stride, image.row_stride, image.height, image.width, narrow.get(), stride},
        across, columns.get(), weighed.get());
    passes.along_y({narrow.get(), stride, image.height, width, out, width}, down);
  }
}

}  // namespace sparsight::engine
