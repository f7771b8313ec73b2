#include "sparsight/ops/norm_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/ops/as_one_expert.h"
#include "sparsight/ops/expert_mlp.h"
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
using OptionalBias = std::optional<at::Tensor>;

// Only the gradients of weights read the values of the normalised rows. saved: x, and the norm's weight and bias.
at::Tensor rows_for_weights(bool needed, AutogradContext* context, const variable_list& saved) {
  if (!needed) return saved[0];
  return normalised_rows(saved[0], {saved[1], saved[2], context->saved_data["epsilon"].toDouble()});
}

class NormLinear : public torch::autograd::Function<NormLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& norm_weight,
                            const at::Tensor& norm_bias, const at::Tensor& weight, const OptionalBias& bias,
                            double epsilon) {
    const LayerNormOutput rows = layer_norm_forward(x, norm_weight, norm_bias, epsilon, /*needs_moments=*/true);
    context->save_for_backward({x, norm_weight, norm_bias, rows.moments, weight});
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["epsilon"] = epsilon;
    save_products(context);
    return grouped_linear_forward(rows.out, one_group(x), as_expert(weight), as_expert(bias));
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("a linear layer has");
    const SavedProducts products(context);
    const auto s = context->get_saved_variables();
    const bool bias = context->saved_data["bias"].toBool() && context->needs_input_grad(4);
    const bool below = needs_any_grad(context, 0, 3);
    const bool weight = context->needs_input_grad(3);
    const at::Tensor rows = rows_for_weights(weight, context, s);
    const GroupedLinearGradients g =
        grouped_linear_backward(grads[0].contiguous(), rows, one_group(rows), as_expert(s[4]), {below, weight, bias});
    LayerNormGradients n;
    if (below) n = layer_norm_backward(g.rows, s[0], s[1], s[3], {}, needs_any_grad(context, 1, 3));
    return {n.x, n.weight, n.bias, of_expert(g.weight), of_expert(g.bias), {}};
  }
};

bool needs_weights(const at::Tensor& w1, const at::Tensor& b1, const at::Tensor& w2, const at::Tensor& b2) {
  return w1.requires_grad() || b1.requires_grad() || w2.requires_grad() || b2.requires_grad();
}

class NormMlp : public torch::autograd::Function<NormMlp> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& norm_weight,
                            const at::Tensor& norm_bias, const at::Tensor& w1, const at::Tensor& b1,
                            const at::Tensor& w2, const at::Tensor& b2, double epsilon, int64_t activation,
                            bool residual, const BranchDrop& drop) {
    const LayerNormOutput rows = layer_norm_forward(x, norm_weight, norm_bias, epsilon, /*needs_moments=*/true);
    at::Tensor kept;
    const KeptHidden what = needs_weights(w1, b1, w2, b2) ? KeptHidden::pre_activation : KeptHidden::slope;
    at::Tensor out = expert_mlp_forward(
        rows.out, rows_in_place(rows.out, one_group(x)), {as_expert(w1), as_expert(b1), as_expert(w2), as_expert(b2)},
        static_cast<Activation>(activation), &kept, {residual ? x : at::Tensor(), drop}, what);
    context->save_for_backward({x, norm_weight, norm_bias, rows.moments, w1, b1, w2, b2, kept});
    context->saved_data["kept"] = static_cast<int64_t>(what);
    context->saved_data["epsilon"] = epsilon;
    save_products(context);
    context->saved_data["activation"] = activation;
    context->saved_data["residual"] = residual;
    save_drop(context, drop);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("an MLP has");
    const SavedProducts products(context);
    const auto s = context->get_saved_variables();
    const bool below = needs_any_grad(context, 0, 3), weights = needs_any_grad(context, 3, 7);
    const at::Tensor whole = grads[0].contiguous();
    const at::Tensor grad = dropped_rows(whole, saved_drop(context));
    at::Tensor rows = rows_for_weights(weights, context, s);
    const ExpertMlpGradients g = expert_mlp_backward(
        grad, rows, rows_in_place(rows, one_group(rows)),
        {as_expert(s[4]), as_expert(s[5]), as_expert(s[6]), as_expert(s[7])},
        static_cast<Activation>(context->saved_data["activation"].toInt()), s[8], {below, /*gate=*/false, weights},
        static_cast<KeptHidden>(context->saved_data["kept"].toInt()));
    rows.reset();  // its memory is free for the next gradient
    LayerNormGradients n;
    if (below)
      n = layer_norm_backward(g.tokens, s[0], s[1], s[3],
                              context->saved_data["residual"].toBool() ? whole : at::Tensor(),
                              needs_any_grad(context, 1, 3));
    const ExpertMlpWeights& w = g.weights;
    return {n.x, n.weight, n.bias, of_expert(w.w1), of_expert(w.b1), of_expert(w.w2), of_expert(w.b2), {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor norm_linear(const at::Tensor& x, const RowNorm& norm, const at::Tensor& weight, const at::Tensor& bias) {
  if (TwiceDifferentiable::wanted())
    return at::linear(layer_norm(x, norm.weight, norm.bias, norm.epsilon), weight, bias);
  if (at::GradMode::is_enabled())
    return NormLinear::apply(x, norm.weight, norm.bias, weight, bias.defined() ? OptionalBias(bias) : std::nullopt,
                             norm.epsilon);
  return grouped_linear_forward(normalised_rows(x, norm), one_group(x), as_expert(weight), as_expert(bias));
}

namespace {

at::Tensor any_norm_mlp(const at::Tensor& x, const RowNorm& norm, const DenseMlpWeights& w, bool residual,
                        const BranchDrop& drop) {
  const auto add = [&] { return ResidualAdd{residual ? x : at::Tensor(), drop}; };
  if (TwiceDifferentiable::wanted())
    return add_residual(at::linear(activate(norm_linear(x, norm, w.w1, w.b1), w.activation), w.w2, w.b2), add());
  if (at::GradMode::is_enabled())
    return NormMlp::apply(x, norm.weight, norm.bias, w.w1, w.b1, w.w2, w.b2, norm.epsilon,
                          static_cast<int64_t>(w.activation), residual, drop);
  const at::Tensor rows = normalised_rows(x, norm);
  return expert_mlp_forward(rows, rows_in_place(rows, one_group(rows)),
                            {as_expert(w.w1), as_expert(w.b1), as_expert(w.w2), as_expert(w.b2)}, w.activation, nullptr,
                            add());
}

}  // namespace

at::Tensor norm_mlp(const at::Tensor& x, const RowNorm& norm, const DenseMlpWeights& weights) {
  return any_norm_mlp(x, norm, weights, /*residual=*/false, {});
}

at::Tensor mlp_residual(const at::Tensor& x, const RowNorm& norm, const DenseMlpWeights& weights,
                        const BranchDrop& drop) {
  return any_norm_mlp(x, norm, weights, /*residual=*/true, drop);
}

at::Tensor normalised_rows(const at::Tensor& x, const RowNorm& norm) {
  return layer_norm_forward(x, norm.weight, norm.bias, norm.epsilon, /*needs_moments=*/false).out;
}

}  // namespace sparsight
