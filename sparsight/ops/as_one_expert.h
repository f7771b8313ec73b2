// The tensors of a fully connected layer as those of a grouped product with one group, and back. Views, no copies.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace sparsight {

// weight [O,I] -> [1,I,O], bias [O] -> [1,O]; undefined stays undefined.
inline at::Tensor as_expert(const at::Tensor& t) {
  if (!t.defined()) return t;
  return t.dim() == 2 ? t.t().unsqueeze(0) : t.unsqueeze(0);
}
inline at::Tensor as_expert(const std::optional<at::Tensor>& t) { return t ? as_expert(*t) : at::Tensor(); }

// The reverse, of gradients.
inline at::Tensor of_expert(const at::Tensor& grad) {
  if (!grad.defined()) return grad;
  return grad.dim() == 3 ? grad.squeeze(0).t() : grad.squeeze(0);
}

}  // namespace sparsight
