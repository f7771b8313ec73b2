#include "sparsight/ops/patch_linear.h"

#include <ATen/ops/conv2d.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/as_one_expert.h"
#include "sparsight/ops/cpu/patch_linear.h"
#include "sparsight/ops/grouped_linear.h"
#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/saved_products.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class PatchLinear : public torch::autograd::Function<PatchLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& images, const at::Tensor& weight,
                            const at::Tensor& bias) {
    context->save_for_backward({images, weight});
    save_products(context);
    return cpu::patch_linear_forward(images, weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("a patch embedding has");
    const SavedProducts products(context);
    const auto saved = context->get_saved_variables();
    const at::Tensor &images = saved[0], &weight = saved[1], grad = grads[0].contiguous();
    at::Tensor images_grad;
    if (context->needs_input_grad(0)) images_grad = cpu::patch_linear_backward(grad, images, weight);
    const GroupedLinearNeeds needs{false, context->needs_input_grad(1), context->needs_input_grad(2)};
    if (!needs.weight && !needs.bias) return {images_grad, {}, {}};
    const at::Tensor rows = cpu::gather_patches(images, weight.size(2));
    const GroupedLinearGradients own =
        grouped_linear_backward(grad.flatten(0, 1), rows, one_group(rows), as_expert(weight.flatten(1)), needs);
    return {images_grad, own.weight.defined() ? of_expert(own.weight).view(weight.sizes()) : own.weight,
            of_expert(own.bias)};
  }
};

}  // namespace

at::Tensor patch_linear(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t side = weight.size(2);
  SPARSIGHT_CHECK(images.size(2) % side == 0 && images.size(3) % side == 0);
  if (TwiceDifferentiable::wanted()) return at::conv2d(images, weight, bias, side).flatten(2).transpose(1, 2);
  const at::Tensor w = weight.contiguous(), b = bias.contiguous();
  if (!at::GradMode::is_enabled()) return cpu::patch_linear_forward(images, w, b);
  return PatchLinear::apply(images, w, b);
}

}  // namespace sparsight
