#include "sparsight/ops/ref/expert_mlp.h"

#include <ATen/TensorOperators.h>

#include "sparsight/ops/ref/grouped_linear.h"
#include "sparsight/ops/ref/rows.h"

namespace sparsight::ref {
namespace {

at::Tensor dropped(const at::Tensor& hidden, const ExpertRows& rows) {
  return rows.dropout.defined() ? hidden * dropout_factors(rows.dropout, hidden.size(1), hidden) : hidden;
}

}  // namespace

at::Tensor expert_mlp_forward(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& w,
                              Activation activation, at::Tensor* pre_activation) {
  const at::Tensor in = ref::gather_rows(tokens, {}, rows.map);
  const at::Tensor hidden = grouped_linear_forward(in, rows.offsets, w.w1, w.b1);
  if (pre_activation) *pre_activation = hidden;
  const at::Tensor out = grouped_linear_forward(dropped(activate(hidden, activation), rows), rows.offsets, w.w2, w.b2);
  return ref::scatter_add_rows(out, rows.gate, rows.map);
}

ExpertMlpGradients expert_mlp_backward(const at::Tensor& grad, const at::Tensor& tokens, const ExpertRows& rows,
                                       const ExpertMlpWeights& w, Activation activation,
                                       const at::Tensor& pre_activation, ExpertMlpNeeds needs) {
  const at::Tensor in = ref::gather_rows(tokens, {}, rows.map);
  const at::Tensor hidden =
      pre_activation.defined() ? pre_activation : grouped_linear_forward(in, rows.offsets, w.w1, w.b1);
  const at::Tensor active = dropped(activate(hidden, activation), rows);
  ExpertMlpGradients out;
  if (needs.gate)
    out.gate = ref::dot_rows(grouped_linear_forward(active, rows.offsets, w.w2, w.b2), grad, rows.map)
                   .to(rows.gate.scalar_type());
  const at::Tensor rows_grad = ref::gather_rows(grad, rows.gate, rows.map);
  const GroupedLinearGradients second = grouped_linear_backward(rows_grad, active, rows.offsets, w.w2,
                                                                {true, needs.weights, needs.weights && w.b2.defined()});
  const GroupedLinearGradients first =
      grouped_linear_backward(activate_backward(dropped(second.rows, rows), hidden, activation), in, rows.offsets, w.w1,
                              {needs.tokens, needs.weights, needs.weights && w.b1.defined()});
  if (needs.tokens) out.tokens = ref::scatter_add_rows(first.rows, {}, rows.map);
  out.weights = {first.weight, first.bias, second.weight, second.bias};
  return out;
}

}  // namespace sparsight::ref
