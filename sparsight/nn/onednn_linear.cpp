#include "sparsight/nn/onednn_linear.h"

#include <optional>
#include <string_view>

#include <ATen/Context.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class OnednnLinear : public torch::autograd::Function<OnednnLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    return onednn_product(x, weight, bias.value_or(at::Tensor()));
  }
  static variable_list backward(AutogradContext* context, variable_list grads) {
    no_second_derivative("linear layers on oneDNN have");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], grad = grads[0].contiguous();
    variable_list out(3);
    if (context->needs_input_grad(0)) out[0] = onednn_product(grad, weight.t().contiguous(), {});
    if (context->needs_input_grad(1)) out[1] = onednn_product(grad.t().contiguous(), x.t().contiguous(), {});
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) out[2] = grad.sum(0);
    return out;
  }
};

}  // namespace

at::Tensor onednn_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool gelu) {
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
                               c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "").typed<Signature>();
  const std::optional<at::Tensor> with_bias = bias.defined() ? std::optional(bias) : std::nullopt;
  return op.call(x, weight, with_bias, gelu ? "gelu" : "none", c10::List<std::optional<at::Scalar>>(), "none");
}

at::Tensor onednn_packed(const at::Tensor& weight, int64_t rows) {
  using Signature = at::Tensor(const at::Tensor&, std::optional<int64_t>);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_reorder_linear_weight", "").typed<Signature>();
  return op.call(weight, rows);
}

at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (TwiceDifferentiable::wanted()) return at::linear(x, weight, bias);
  return OnednnLinear::apply(x.contiguous(), weight.contiguous(),
                             bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
}

bool has_onednn() {
  return at::Context::hasMKLDNN() && c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
}

}  // namespace sparsight
