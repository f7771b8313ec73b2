#include "sparsight/ops/random_fill.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/tasks.h"

namespace sparsight {
namespace {

// Calls `convert(words, values)` for each block of the stream; a block of four words gives four elements. Element
// `first` of the stream goes to out[0]; if `first` is not a multiple of four, the first elements of its block are
// skipped.
template <class T, class Convert>
void fill_blocks(T* out, int64_t count, const RandomStream& stream, uint64_t first, const Convert& convert) {
  const auto skip = static_cast<int64_t>(first % 4);
  cpu::run_ranges((skip + count + 3) / 4, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      T values[4];
      convert(stream.block_at(first / 4 + static_cast<uint64_t>(block)), values);
      const int64_t from = std::max<int64_t>(0, 4 * block - skip), to = std::min(count, 4 * block - skip + 4);
      std::copy_n(values + (from + skip - 4 * block), to - from, out + from);
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

// 1/keep with probability `keep`, else 0.
class KeepOrDrop {
 public:
  explicit KeepOrDrop(double keep) : limit_(keep * 0x1p32), scale_(static_cast<float>(1 / keep)) {}
  void operator()(const std::array<uint32_t, 4>& words, float* values) const {
    for (int i = 0; i < 4; ++i) values[i] = words[i] < limit_ ? scale_ : 0;
  }

 private:
  double limit_;
  float scale_;
};

template <class Convert>
void fill(at::Tensor& out, const RandomStream& stream, uint64_t first, const Convert& convert) {
  SPARSIGHT_CHECK(out.is_contiguous() && out.is_cpu());
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "fill",
                             [&] { fill_blocks(out.data_ptr<scalar_t>(), out.numel(), stream, first, convert); });
}

template <class T>
T largest_below(double low, double high) {
  return std::nextafter(static_cast<T>(high), static_cast<T>(low));
}

}  // namespace

void fill_normal(at::Tensor& out, const RandomStream& stream, double mean, double std, uint64_t first) {
  fill(out, stream, first, [=]<class T>(const std::array<uint32_t, 4>& words, T* values) {
    normal_pair(words[0], words[1], values);
    normal_pair(words[2], words[3], values + 2);
    for (int i = 0; i < 4; ++i) values[i] = static_cast<T>(mean) + static_cast<T>(std) * values[i];
  });
}

void fill_uniform(at::Tensor& out, const RandomStream& stream, double low, double high, uint64_t first) {
  // 32 bits may round up to `high` in fp32.
  const std::pair<float, double> maximum{largest_below<float>(low, high), largest_below<double>(low, high)};
  fill(out, stream, first, [=]<class T>(const std::array<uint32_t, 4>& words, T* values) {
    for (int i = 0; i < 4; ++i)
      values[i] = std::min(std::get<T>(maximum), static_cast<T>(low + (high - low) * (words[i] * 0x1p-32)));
  });
}

at::Tensor normal_like(const at::Tensor& like, at::IntArrayRef sizes, const RandomStream& stream, uint64_t first) {
  at::Tensor out = at::empty(sizes, like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  fill_normal(out, stream, 0, 1, first);
  return out.to(like.device());
}

at::Tensor uniform_like(const at::Tensor& like, at::IntArrayRef sizes, const RandomStream& stream, uint64_t first) {
  at::Tensor out = at::empty(sizes, like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  fill_uniform(out, stream, 0, 1, first);
  return out.to(like.device());
}

at::Tensor keep_mask_like(const at::Tensor& like, at::IntArrayRef sizes, double keep, const RandomStream& stream,
                          uint64_t first) {
  at::Tensor out = at::empty(sizes, at::kFloat);
  fill_blocks(out.data_ptr<float>(), out.numel(), stream, first, KeepOrDrop(keep));
  return out.to(like.options());
}

namespace {

struct RowRun {
  int64_t begin, number, count;  // rows begin .. begin+count-1 of the result are rows number .. of the stream
};

std::vector<RowRun> runs_of(const RandomRows& rows) {
  if (!rows.number.defined()) return {{0, 0, rows.rows}};
  const at::Tensor numbers = rows.number.to(at::kCPU, at::kLong).contiguous();
  SPARSIGHT_CHECK(numbers.numel() == rows.rows);
  const int64_t* number = numbers.const_data_ptr<int64_t>();
  std::vector<RowRun> runs;
  for (int64_t begin = 0, end = 1; begin < rows.rows; begin = end++) {
    while (end < rows.rows && number[end] == number[end - 1] + 1) ++end;
    runs.push_back({begin, number[begin], end - begin});
  }
  return runs;
}

// A single run is filled by all threads; several are distributed among them.
template <class Fill>
void for_each_run(const RandomRows& rows, const Fill& fill) {
  const std::vector<RowRun> runs = runs_of(rows);
  if (runs.size() == 1) return fill(runs[0]);
  const int64_t values = rows.rows * rows.columns, count = static_cast<int64_t>(runs.size());
  const int64_t grain = std::max<int64_t>(1, 4096 * count / std::max<int64_t>(1, values));
  cpu::run_ranges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fill(runs[static_cast<size_t>(i)]);
  });
}

using FillNormal = void (*)(at::Tensor&, const RandomStream&, double, double, uint64_t);

at::Tensor filled_rows(const at::Tensor& like, const RandomRows& rows, const RandomStream& stream, FillNormal fill) {
  at::Tensor out = at::empty({rows.rows, rows.columns}, like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  for_each_run(rows, [&](const RowRun& run) {
    at::Tensor part = out.narrow(0, run.begin, run.count);
    fill(part, stream, 0, 1, static_cast<uint64_t>(run.number) * static_cast<uint64_t>(rows.columns));
  });
  return out.to(like.device());
}

}  // namespace

at::Tensor normal_rows(const at::Tensor& like, const RandomRows& rows, const RandomStream& stream) {
  return filled_rows(like, rows, stream, fill_normal);
}

at::Tensor uniform_rows(const at::Tensor& like, const RandomRows& rows, const RandomStream& stream) {
  return filled_rows(like, rows, stream, fill_uniform);
}

at::Tensor keep_mask_rows(const at::Tensor& like, const RandomRows& rows, double keep, const RandomStream& stream) {
  at::Tensor out = at::empty({rows.rows, rows.columns}, at::kFloat);
  float* mask = out.data_ptr<float>();
  const auto columns = static_cast<uint64_t>(rows.columns);
  for_each_run(rows, [&](const RowRun& run) {
    fill_blocks(mask + run.begin * rows.columns, run.count * rows.columns, stream,
                static_cast<uint64_t>(run.number) * columns, KeepOrDrop(keep));
  });
  return out.to(like.options());
}

}  // namespace sparsight
