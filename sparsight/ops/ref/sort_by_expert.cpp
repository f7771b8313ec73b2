#include "sparsight/ops/ref/sort_by_expert.h"

#include <ATen/ops/argsort.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/zeros.h>

namespace sparsight::ref {

ExpertGroups sort_by_expert(const at::Tensor& expert, const at::Tensor& kept, int64_t experts) {
  const at::Tensor assignments = at::nonzero(kept).squeeze(1);
  const at::Tensor of = expert.index_select(0, assignments);
  const at::Tensor order =
      assignments.index_select(0, at::argsort(of, /*stable=*/true, /*dim=*/0, /*descending=*/false));
  const at::Tensor ends = at::cumsum(count_by_expert(of, experts), 0);
  return {order, at::cat({at::zeros({1}, ends.options()), ends})};
}

at::Tensor count_by_expert(const at::Tensor& expert, int64_t experts) { return at::bincount(expert, {}, experts); }

}  // namespace sparsight::ref
