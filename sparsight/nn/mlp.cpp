#include "sparsight/nn/mlp.h"

#include "sparsight/nn/layer_scale.h"
#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/grouped_linear.h"
#include "sparsight/ops/residual_branch.h"

namespace sparsight {

MlpImpl::MlpImpl(const MlpOptions& options)
    : fc1_(register_module("fc1", Linear(options.width, options.hidden))),
      fc2_(register_module("fc2", Linear(options.hidden, options.width))),
      activation_(options.activation) {}

at::Tensor MlpImpl::forward(const at::Tensor& x) { return forward(x, DropoutMask{}); }

at::Tensor MlpImpl::forward(const at::Tensor& x, const DropoutMask& hidden, const at::Tensor& gamma) {
  const LinearWeights last = scaled(*fc2_, gamma);
  if (!suits_kernels(x)) {
    at::Tensor y = activate(fc1_->forward(x), activation_);
    if (hidden.defined()) y = dropped(y, {.dropout = hidden});
    return fully_connected(y, last.weight, last.bias);
  }
  const at::Tensor rows = x.reshape({-1, x.size(-1)});
  ExpertRows row_map = rows_in_place(rows, one_group(rows));
  row_map.dropout = hidden;
  return expert_mlp(rows, row_map,
                    {fc1_->weight.t().unsqueeze(0), fc1_->bias.unsqueeze(0), last.weight.t().unsqueeze(0),
                     last.bias.unsqueeze(0)},
                    {activation_})
      .view_as(x);
}

at::Tensor MlpImpl::forward(const at::Tensor& x, LayerNorm norm) {
  if (!suits_kernels(x)) return forward(norm->forward(x));
  const at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  return norm_mlp(rows, norm->row_norm(), {fc1_->weight, fc1_->bias, fc2_->weight, fc2_->bias, activation_}).view_as(x);
}

at::Tensor MlpImpl::forward_residual(const at::Tensor& x, LayerNorm norm, const BranchDrop& drop) {
  return forward_residual(x, norm, drop, DropoutMask{});
}

at::Tensor MlpImpl::forward_residual(const at::Tensor& x, LayerNorm norm, const BranchDrop& drop,
                                     const DropoutMask& hidden, const at::Tensor& gamma) {
  if (hidden.defined() || !suits_kernels(x)) return add_residual(forward(norm->forward(x), hidden, gamma), {x, drop});
  const LinearWeights last = scaled(*fc2_, gamma);
  const at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  return mlp_residual(rows, norm->row_norm(), {fc1_->weight, fc1_->bias, last.weight, last.bias, activation_}, drop)
      .view_as(x);
}

Cost MlpImpl::cost() const {
  return fc1_->cost() + elementwise_cost(activation_operations(activation_) * fc1_->weight.size(0)) + fc2_->cost();
}

}  // namespace sparsight
