#include "sparsight/ops/rows.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/row_numbers.h"
#include "sparsight/ops/off_cpu.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

using cpu::Wide;

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

}  // namespace

RowMap map_rows(const at::Tensor& token, const at::Tensor& order, int64_t tokens) {
  if (!token.is_cpu()) return off_cpu::map_rows(token, order, tokens);
  const at::Tensor token_in = token.contiguous(), order_in = order.contiguous();
  const int64_t rows = order.size(0);
  RowMap map{tokens, at::empty({rows}, at::kLong), at::empty({rows}, at::kLong), at::empty({tokens + 1}, at::kLong)};
  cpu::number_rows(token_in.const_data_ptr<int64_t>(), token.size(0), order_in.const_data_ptr<int64_t>(), rows, tokens,
                   map.row_token.data_ptr<int64_t>(), map.token_rows.data_ptr<int64_t>(),
                   map.token_offsets.data_ptr<int64_t>());
  return map;
}

at::Tensor gather_rows(const at::Tensor& values, const at::Tensor& weight, const RowMap& map) {
  SPARSIGHT_CHECK(values.dim() == 2 && values.size(0) == map.tokens);
  if (!values.is_cpu()) return off_cpu::gather_rows(values, weight, map);
  const at::Tensor in = values.contiguous(), scale = wide_weight(weight, values);
  at::Tensor out = empty_like_rows(in, map.row_token.size(0));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, in.scalar_type(), "gather_rows", [&] {
    cpu::gather_rows(cpu::torch_threads(), cpu::row_numbers(map), in.const_data_ptr<scalar_t>(),
                     data_or_null<scalar_t>(scale), in.size(1), out.data_ptr<scalar_t>());
  });
  return out;
}

at::Tensor scatter_add_rows(const at::Tensor& rows, const at::Tensor& weight, const RowMap& map) {
  SPARSIGHT_CHECK(rows.dim() == 2 && rows.size(0) == map.row_token.size(0));
  if (!rows.is_cpu()) return off_cpu::scatter_add_rows(rows, weight, map);
  const at::Tensor in = rows.contiguous(), scale = wide_weight(weight, rows);
  at::Tensor out = empty_like_rows(in, map.tokens);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, in.scalar_type(), "scatter_add_rows", [&] {
    cpu::scatter_add_rows(cpu::torch_threads(), cpu::row_numbers(map), in.const_data_ptr<scalar_t>(),
                          data_or_null<scalar_t>(scale), in.size(1), out.data_ptr<scalar_t>());
  });
  return out;
}

at::Tensor dot_rows(const at::Tensor& rows, const at::Tensor& values, const RowMap& map) {
  SPARSIGHT_CHECK(rows.scalar_type() == values.scalar_type() && rows.size(1) == values.size(1));
  if (!rows.is_cpu()) return off_cpu::dot_rows(rows, values, map);
  const at::Tensor a = rows.contiguous(), b = values.contiguous();
  at::Tensor out = at::empty({a.size(0)}, a.options().dtype(wide_type(a)));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, a.scalar_type(), "dot_rows", [&] {
    cpu::dot_rows(cpu::torch_threads(), cpu::row_numbers(map), a.const_data_ptr<scalar_t>(),
                  b.const_data_ptr<scalar_t>(), a.size(1), out.data_ptr<Wide<scalar_t>>());
  });
  return out;
}

}  // namespace sparsight
