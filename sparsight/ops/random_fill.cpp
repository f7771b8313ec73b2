#include "sparsight/ops/random_fill.h"

#include <algorithm>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/kernels/random/fill.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

template <class T>
cpu::RandomRange<T> all_of(at::Tensor& out, uint64_t first) {
  SPARSIGHT_CHECK(out.is_contiguous() && out.is_cpu());
  return {out.data_ptr<T>(), out.numel(), first};
}

}  // namespace

void fill_normal(at::Tensor& out, const RandomStream& stream, double mean, double std, uint64_t first) {
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "fill", [&] {
    cpu::fill_normal(cpu::torch_threads(), all_of<scalar_t>(out, first), stream, mean, std);
  });
}

void fill_uniform(at::Tensor& out, const RandomStream& stream, double low, double high, uint64_t first) {
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "fill", [&] {
    cpu::fill_uniform(cpu::torch_threads(), all_of<scalar_t>(out, first), stream, low, high);
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
  cpu::fill_keep_mask(cpu::torch_threads(), all_of<float>(out, first), stream, keep);
  return out.to(like.options());
}

namespace {

struct RowRun {
  int64_t begin, number, count;  // rows begin .. begin+count-1 of the result are rows number .. of the stream
};

std::vector<RowRun> find_runs(const RandomRows& rows) {
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
  const std::vector<RowRun> runs = find_runs(rows);
  if (runs.size() == 1) return fill(runs[0]);
  const int64_t values = rows.rows * rows.columns, count = static_cast<int64_t>(runs.size());
  const int64_t grain = std::max<int64_t>(1, 4096 * count / std::max<int64_t>(1, values));
  cpu::run_ranges(cpu::torch_threads(), count, grain, [&](int64_t begin, int64_t end) {
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
    cpu::fill_keep_mask(
        cpu::torch_threads(),
        {mask + run.begin * rows.columns, run.count * rows.columns, static_cast<uint64_t>(run.number) * columns},
        stream, keep);
  });
  return out.to(like.options());
}

}  // namespace sparsight
