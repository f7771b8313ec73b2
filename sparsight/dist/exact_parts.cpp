#include "sparsight/dist/exact_parts.h"

#include <ATen/TensorOperators.h>

namespace sparsight::dist {

void ExactParts::add(const at::Tensor& parameter, int64_t rank, const at::Tensor& gradient) {
  std::vector<at::Tensor>& by_rank = gradients_[parameter.unsafeGetTensorImpl()];
  by_rank.resize(static_cast<size_t>(size()));
  at::Tensor& own = by_rank[static_cast<size_t>(rank)];
  own = own.defined() ? own + gradient : gradient;
}

std::vector<std::vector<at::Tensor>> ExactParts::take(const std::vector<at::Tensor>& parameters) {
  std::vector<std::vector<at::Tensor>> taken(static_cast<size_t>(size()), std::vector<at::Tensor>(parameters.size()));
  for (size_t p = 0; p < parameters.size(); ++p) {
    const auto found = gradients_.find(parameters[p].unsafeGetTensorImpl());
    if (found == gradients_.end()) continue;
    for (size_t r = 0; r < taken.size(); ++r) taken[r][p] = found->second[r];
  }
  gradients_.clear();
  return taken;
}

}  // namespace sparsight::dist
