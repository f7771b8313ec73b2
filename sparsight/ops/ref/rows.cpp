#include "sparsight/ops/ref/rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/zeros.h>

namespace sparsight::ref {
namespace {

at::Tensor widen(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

at::Tensor scale(const at::Tensor& rows, const at::Tensor& weight) {
  return weight.defined() ? rows * weight.to(rows.scalar_type()).unsqueeze(1) : rows;
}

}  // namespace

RowMap map_rows(const at::Tensor& token, const at::Tensor& order, int64_t tokens) {
  const at::Tensor row_token = token.index_select(0, order);
  const at::Tensor by_assignment = at::argsort(order, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor by_token = at::argsort(row_token.index_select(0, by_assignment), /*stable=*/true, 0, false);
  const at::Tensor ends = at::cumsum(at::bincount(row_token, {}, tokens), 0);
  return {tokens, row_token, by_assignment.index_select(0, by_token), at::cat({at::zeros({1}, ends.options()), ends})};
}

at::Tensor gather_rows(const at::Tensor& values, const at::Tensor& weight, const RowMap& map) {
  return scale(widen(values).index_select(0, map.row_token), weight).to(values.scalar_type());
}

at::Tensor scatter_add_rows(const at::Tensor& rows, const at::Tensor& weight, const RowMap& map) {
  const at::Tensor scaled = scale(widen(rows), weight);
  return at::zeros({map.tokens, rows.size(1)}, scaled.options())
      .index_add_(0, map.row_token, scaled)
      .to(rows.scalar_type());
}

at::Tensor dot_rows(const at::Tensor& rows, const at::Tensor& values, const RowMap& map) {
  return (widen(rows) * widen(values).index_select(0, map.row_token)).sum(1);
}

}  // namespace sparsight::ref
