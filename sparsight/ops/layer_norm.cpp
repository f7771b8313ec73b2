#include "sparsight/ops/layer_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/cpu/layer_norm.h"
#include "sparsight/ops/needs_any_grad.h"
#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/off_cpu.h"
#include "sparsight/ops/ref/layer_norm.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class NormOfRows : public torch::autograd::Function<NormOfRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double epsilon) {
    const LayerNormOutput output = layer_norm_forward(x, weight, bias, epsilon, /*needs_moments=*/true);
    context->save_for_backward({x, weight, output.moments});
    return output.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("layer norm has");
    const auto saved = context->get_saved_variables();
    const bool weights = needs_any_grad(context, 1, 3);
    const LayerNormGradients out =
        layer_norm_backward(grads[0].contiguous(), saved[0], saved[1], saved[2], {}, weights);
    return {out.x, out.weight, out.bias, {}};
  }
};

void check(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.dim() == 0 || x.size(-1) == 0) fail("layer norm needs rows [...,D] with D >= 1, got ", x.sizes());
  if (weight.dim() != 1 || weight.size(0) != x.size(-1) || bias.sizes() != weight.sizes())
    fail("layer norm of rows [...,", x.size(-1), "] needs weight and bias [", x.size(-1), "], got ", weight.sizes(),
         " and ", bias.sizes());
  if (!at::isFloatingType(x.scalar_type()) || weight.scalar_type() != x.scalar_type() ||
      bias.scalar_type() != x.scalar_type())
    fail("layer norm needs rows, weight and bias of one floating type, got ", x.scalar_type(), ", ",
         weight.scalar_type(), " and ", bias.scalar_type());
}

bool has_norm_kernels(const at::Tensor& x) { return x.scalar_type() == at::kFloat; }

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  check(x, weight, bias);
  if (TwiceDifferentiable::wanted()) return at::layer_norm(x, {x.size(-1)}, weight, bias, epsilon);
  const at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  const at::Tensor w = weight.contiguous(), b = bias.contiguous();
  const at::Tensor out = at::GradMode::is_enabled()
                             ? NormOfRows::apply(rows, w, b, epsilon)
                             : layer_norm_forward(rows, w, b, epsilon, /*needs_moments=*/false).out;
  return out.view(x.sizes());
}

LayerNormOutput layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   double epsilon, bool needs_moments) {
  if (!x.is_cpu()) return off_cpu::layer_norm_forward(x, weight, bias, epsilon, needs_moments);
  return has_norm_kernels(x) ? cpu::layer_norm_forward(x, weight, bias, epsilon, needs_moments)
                             : ref::layer_norm_forward(x, weight, bias, epsilon, needs_moments);
}

LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& moments, const at::Tensor& residual, bool needs_weights) {
  if (x.is_cpu() && has_norm_kernels(x))
    return cpu::layer_norm_backward(grad, x, weight, moments, residual, needs_weights);
  LayerNormGradients out = x.is_cpu() ? ref::layer_norm_backward(grad, x, weight, moments)
                                      : off_cpu::layer_norm_backward(grad, x, weight, moments);
  if (residual.defined()) out.x = out.x + residual;
  if (!needs_weights) out.weight = out.bias = at::Tensor();
  return out;
}

}  // namespace sparsight
