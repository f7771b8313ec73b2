#include "sparsight/ops/rows.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/tasks.h"
#include "sparsight/ops/off_cpu.h"

namespace sparsight {
namespace {

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

at::ScalarType wide_type(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

// The weights as the kernels read them, or undefined.
at::Tensor wide_weight(const at::Tensor& weight, const at::Tensor& values) {
  return weight.defined() ? weight.to(wide_type(values)).contiguous() : weight;
}

template <class T>
const Wide<T>* data_or_null(const at::Tensor& weight) {
  return weight.defined() ? weight.const_data_ptr<Wide<T>>() : nullptr;
}

// [count,D] of the type of rows [_,D].
at::Tensor empty_like_rows(const at::Tensor& rows, int64_t count) {
  return rows.scalar_type() == at::kFloat ? cpu::empty_from_arena({count, rows.size(1)})
                                          : at::empty({count, rows.size(1)}, rows.options());
}

int64_t grain(int64_t width) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width)); }

// Eight sums side by side: a fixed order that the compiler can vectorise.
template <class T>
Wide<T> dot(const T* a, const T* b, int64_t width) {
  Wide<T> lanes[8] = {};
  int64_t d = 0;
  for (; d + 8 <= width; d += 8)
    for (int lane = 0; lane < 8; ++lane)
      lanes[lane] += static_cast<Wide<T>>(a[d + lane]) * static_cast<Wide<T>>(b[d + lane]);
  for (; d < width; ++d) lanes[0] += static_cast<Wide<T>>(a[d]) * static_cast<Wide<T>>(b[d]);
  return std::accumulate(lanes, lanes + 8, Wide<T>{0});
}

}  // namespace

RowMap map_rows(const at::Tensor& token, const at::Tensor& order, int64_t tokens) {
  if (!token.is_cpu()) return off_cpu::map_rows(token, order, tokens);
  const at::Tensor token_in = token.contiguous(), order_in = order.contiguous();
  const int64_t *of = token_in.const_data_ptr<int64_t>(), *assignment = order_in.const_data_ptr<int64_t>();
  const int64_t assignments = token.size(0), rows = order.size(0);

  std::vector<int64_t> row_of(static_cast<size_t>(assignments), -1);
  RowMap map{tokens, at::empty({rows}, at::kLong), at::empty({rows}, at::kLong), at::zeros({tokens + 1}, at::kLong)};
  int64_t *row_token = map.row_token.data_ptr<int64_t>(), *token_rows = map.token_rows.data_ptr<int64_t>();
  int64_t* offset = map.token_offsets.data_ptr<int64_t>();
  for (int64_t r = 0; r < rows; ++r) {
    row_token[r] = of[assignment[r]];
    row_of[assignment[r]] = r;
    ++offset[row_token[r] + 1];
  }
  for (int64_t j = 0; j < tokens; ++j) offset[j + 1] += offset[j];
  std::vector<int64_t> next(offset, offset + tokens);
  for (int64_t a = 0; a < assignments; ++a)
    if (row_of[a] >= 0) token_rows[next[of[a]]++] = row_of[a];
  return map;
}

at::Tensor gather_rows(const at::Tensor& values, const at::Tensor& weight, const RowMap& map) {
  SPARSIGHT_CHECK(values.dim() == 2 && values.size(0) == map.tokens);
  if (!values.is_cpu()) return off_cpu::gather_rows(values, weight, map);
  const at::Tensor in = values.contiguous(), scale = wide_weight(weight, values);
  const int64_t rows = map.row_token.size(0), width = in.size(1);
  const int64_t* token = map.row_token.const_data_ptr<int64_t>();
  at::Tensor out = empty_like_rows(in, rows);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, in.scalar_type(), "gather_rows", [&] {
    const scalar_t* from = in.const_data_ptr<scalar_t>();
    const auto* w = data_or_null<scalar_t>(scale);
    scalar_t* to = out.data_ptr<scalar_t>();
    cpu::run_ranges(rows, grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const scalar_t* source = from + token[r] * width;
        if (!w) {
          std::copy_n(source, width, to + r * width);
          continue;
        }
        for (int64_t d = 0; d < width; ++d)
          to[r * width + d] = static_cast<scalar_t>(w[r] * static_cast<Wide<scalar_t>>(source[d]));
      }
    });
  });
  return out;
}

at::Tensor scatter_add_rows(const at::Tensor& rows, const at::Tensor& weight, const RowMap& map) {
  SPARSIGHT_CHECK(rows.dim() == 2 && rows.size(0) == map.row_token.size(0));
  if (!rows.is_cpu()) return off_cpu::scatter_add_rows(rows, weight, map);
  const at::Tensor in = rows.contiguous(), scale = wide_weight(weight, rows);
  const int64_t width = in.size(1);
  const int64_t* row_of = map.token_rows.const_data_ptr<int64_t>();
  const int64_t* offset = map.token_offsets.const_data_ptr<int64_t>();
  at::Tensor out = empty_like_rows(in, map.tokens);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, in.scalar_type(), "scatter_add_rows", [&] {
    using Sum = Wide<scalar_t>;
    const scalar_t* from = in.const_data_ptr<scalar_t>();
    const Sum* w = data_or_null<scalar_t>(scale);
    scalar_t* to = out.data_ptr<scalar_t>();
    cpu::run_ranges(map.tokens, grain(width), [&](int64_t begin, int64_t end) {
      std::vector<Sum> sum(static_cast<size_t>(width));
      for (int64_t j = begin; j < end; ++j) {
        std::fill(sum.begin(), sum.end(), Sum{0});
        for (int64_t i = offset[j]; i < offset[j + 1]; ++i) {
          const scalar_t* source = from + row_of[i] * width;
          const Sum factor = w ? w[row_of[i]] : Sum{1};
          for (int64_t d = 0; d < width; ++d) sum[d] += factor * static_cast<Sum>(source[d]);
        }
        for (int64_t d = 0; d < width; ++d) to[j * width + d] = static_cast<scalar_t>(sum[d]);
      }
    });
  });
  return out;
}

at::Tensor dot_rows(const at::Tensor& rows, const at::Tensor& values, const RowMap& map) {
  SPARSIGHT_CHECK(rows.scalar_type() == values.scalar_type() && rows.size(1) == values.size(1));
  if (!rows.is_cpu()) return off_cpu::dot_rows(rows, values, map);
  const at::Tensor a = rows.contiguous(), b = values.contiguous();
  const int64_t width = a.size(1), count = a.size(0);
  const int64_t* token = map.row_token.const_data_ptr<int64_t>();
  at::Tensor out = at::empty({count}, a.options().dtype(wide_type(a)));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, a.scalar_type(), "dot_rows", [&] {
    const scalar_t *left = a.const_data_ptr<scalar_t>(), *right = b.const_data_ptr<scalar_t>();
    auto* to = out.data_ptr<Wide<scalar_t>>();
    cpu::run_ranges(count, grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) to[r] = dot(left + r * width, right + token[r] * width, width);
    });
  });
  return out;
}

}  // namespace sparsight
