#include "sparsight/ops/residual_branch.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/ops/as_one_expert.h"
#include "sparsight/ops/attention.h"
#include "sparsight/ops/grouped_linear.h"
#include "sparsight/ops/layer_norm.h"
#include "sparsight/ops/needs_any_grad.h"
#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/saved_drop.h"
#include "sparsight/ops/saved_products.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor to_rows(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

// What the backward pass reads of the attention half; moments and log_sum are undefined unless requested.
struct AttentionHalf {
  at::Tensor out, moments, qkv;
  AttentionOutput attended;
};

AttentionHalf attend(const at::Tensor& x, const RowNorm& norm, const AttentionWeights& w, const BranchDrop& drop,
                     bool keeps) {
  const at::Tensor rows = to_rows(x);
  AttentionHalf half;
  {
    const LayerNormOutput normal = layer_norm_forward(rows, norm.weight, norm.bias, norm.epsilon, keeps);
    half.moments = normal.moments;
    half.qkv = grouped_linear_forward(normal.out, one_group(rows), as_expert(w.qkv), as_expert(w.qkv_bias))
                   .view({x.size(0), x.size(1), w.qkv.size(0)});
  }
  half.attended = attention_forward(half.qkv, w.heads, keeps, x.size(1));
  if (!keeps) half.qkv = at::Tensor();
  half.out = grouped_linear_forward(to_rows(half.attended.out), one_group(rows), as_expert(w.proj),
                                    as_expert(w.proj_bias), {rows, drop})
                 .view(x.sizes());
  return half;
}

class AttentionResidual : public torch::autograd::Function<AttentionResidual> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& norm_weight,
                            const at::Tensor& norm_bias, const at::Tensor& qkv, const at::Tensor& proj,
                            const at::Tensor& proj_bias, const std::optional<at::Tensor>& qkv_bias, double epsilon,
                            int64_t heads, const BranchDrop& drop) {
    const AttentionHalf half =
        attend(x, {norm_weight, norm_bias, epsilon}, {qkv, qkv_bias.value_or(at::Tensor()), proj, proj_bias, heads},
               drop, /*keeps=*/true);
    context->save_for_backward(
        {x, norm_weight, norm_bias, half.moments, qkv, proj, half.qkv, half.attended.out, half.attended.log_sum});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["qkv_bias"] = qkv_bias.has_value();
    save_products(context);
    save_drop(context, drop);
    return half.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("attention has");
    const SavedProducts products(context);
    const auto s = context->get_saved_variables();
    const bool bias = context->saved_data["qkv_bias"].toBool() && context->needs_input_grad(6);
    const bool input = needs_any_grad(context, 0, 3), below = input || context->needs_input_grad(3) || bias;
    const at::Tensor whole = to_rows(grads[0].contiguous()), grad = dropped_rows(whole, saved_drop(context)),
                     x = to_rows(s[0]), group = one_group(grad);
    GroupedLinearGradients outer =
        grouped_linear_backward(grad, to_rows(s[7]), group, as_expert(s[5]),
                                {below, context->needs_input_grad(4), context->needs_input_grad(5)});
    GroupedLinearGradients inner;
    if (below) {
      const at::Tensor grad_qkv =
          attention_backward(std::exchange(outer.rows, {}).view(s[7].sizes()), s[6], {s[7], s[8]});
      // Only the gradient of the weight reads the values of the normalised rows.
      const bool weight = context->needs_input_grad(3);
      const at::Tensor rows = weight ? normalised_rows(x, {s[1], s[2], context->saved_data["epsilon"].toDouble()}) : x;
      inner = grouped_linear_backward(to_rows(grad_qkv), rows, group, as_expert(s[4]), {input, weight, bias});
    }
    LayerNormGradients n;
    if (input) n = layer_norm_backward(inner.rows, x, s[1], s[3], whole, needs_any_grad(context, 1, 3));
    if (n.x.defined()) n.x = n.x.view(s[0].sizes());
    return {n.x,
            n.weight,
            n.bias,
            of_expert(inner.weight),
            of_expert(outer.weight),
            of_expert(outer.bias),
            of_expert(inner.bias),
            {},
            {},
            {}};
  }
};

}  // namespace

at::Tensor attention_residual(const at::Tensor& x, const RowNorm& norm, const AttentionWeights& w,
                              const BranchDrop& drop) {
  if (TwiceDifferentiable::wanted()) {
    const at::Tensor qkv = norm_linear(x, norm, w.qkv, w.qkv_bias);
    return add_residual(at::linear(attention(qkv, w.heads), w.proj, w.proj_bias), {x, drop});
  }
  if (!at::GradMode::is_enabled()) return attend(x, norm, w, drop, /*keeps=*/false).out;
  return AttentionResidual::apply(x, norm.weight, norm.bias, w.qkv, w.proj, w.proj_bias,
                                  w.qkv_bias.defined() ? std::optional<at::Tensor>(w.qkv_bias) : std::nullopt,
                                  norm.epsilon, w.heads, drop);
}

}  // namespace sparsight
