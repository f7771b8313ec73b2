#include "sparsight/ops/conv2d.h"

#include <optional>
#include <vector>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/kernels/conv/conv2d.h"
#include "sparsight/ops/channels_last.h"
#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/saved_products.h"
#include "sparsight/ops/torch_threads.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

cpu::Conv2d conv_shape(const at::Tensor& x, const at::Tensor& weight, int64_t stride, const MapPadding& padding) {
  cpu::Conv2d conv{.images = x.size(0), .inputs = x.size(1), .outputs = weight.size(0), .kernel = weight.size(2)};
  conv.stride = stride;
  const auto outputs = [&](int64_t side, int64_t zeros) { return (side + zeros - conv.kernel) / stride + 1; };
  conv.down = {x.size(2), outputs(x.size(2), padding.top + padding.bottom), padding.top};
  conv.across = {x.size(3), outputs(x.size(3), padding.left + padding.right), padding.left};
  conv.bf16 = multiplies_bf16();
  return conv;
}

at::Tensor new_maps(int64_t images, int64_t channels, int64_t height, int64_t width) {
  return at::empty({images, channels, height, width}, at::TensorOptions(at::kFloat), kChannelsLast);
}

at::Tensor forward_maps(const cpu::Conv2d& conv, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias) {
  at::Tensor y = new_maps(conv.images, conv.outputs, conv.down.outputs, conv.across.outputs);
  cpu::conv2d(cpu::torch_threads(), conv, x.const_data_ptr<float>(), weight.const_data_ptr<float>(),
              bias.defined() ? bias.const_data_ptr<float>() : nullptr, y.data_ptr<float>());
  return y;
}

class Convolution : public torch::autograd::Function<Convolution> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, int64_t stride,
                            const std::vector<int64_t>& padding) {
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    save_products(context);
    return forward_maps(conv_shape(x, weight, stride, {padding[0], padding[1], padding[2], padding[3]}), x, weight,
                        bias.value_or(at::Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("a convolution has");
    const SavedProducts products(context);
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], grad = grads[0].contiguous(kChannelsLast);
    const std::vector<int64_t> padding = context->saved_data["padding"].toIntVector();
    const cpu::Conv2d conv =
        conv_shape(x, weight, context->saved_data["stride"].toInt(), {padding[0], padding[1], padding[2], padding[3]});
    const auto* const of_output = grad.const_data_ptr<float>();
    at::Tensor of_x, of_weight, of_bias;
    if (context->needs_input_grad(0)) {
      of_x = new_maps(conv.images, conv.inputs, conv.down.side, conv.across.side);
      cpu::conv2d_backward_input(cpu::torch_threads(), conv, of_output, weight.const_data_ptr<float>(),
                                 of_x.data_ptr<float>());
    }
    const bool bias = context->saved_data["bias"].toBool() && context->needs_input_grad(2);
    if (context->needs_input_grad(1) || bias) {
      of_weight = new_maps(conv.outputs, conv.inputs, conv.kernel, conv.kernel);
      if (bias) of_bias = at::empty({conv.outputs});
      cpu::conv2d_backward_weight(cpu::torch_threads(), conv, of_output, x.const_data_ptr<float>(),
                                  of_weight.data_ptr<float>(), of_bias.defined() ? of_bias.data_ptr<float>() : nullptr);
    }
    return {of_x, of_weight, of_bias, {}, {}};
  }
};

}  // namespace

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  const MapPadding& p) {
  if (TwiceDifferentiable::wanted()) return torch_conv2d(x, weight, bias, stride, p, /*groups=*/1);
  const at::Tensor maps = x.contiguous(kChannelsLast), w = weight.contiguous(kChannelsLast);
  if (!at::GradMode::is_enabled()) return forward_maps(conv_shape(maps, w, stride, p), maps, w, bias);
  return Convolution::apply(maps, w, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt, stride,
                            std::vector<int64_t>{p.top, p.bottom, p.left, p.right});
}

at::Tensor torch_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                        const MapPadding& p, int64_t groups) {
  if (p.top == p.bottom && p.left == p.right)
    return at::conv2d(x, weight, bias, stride, at::IntArrayRef({p.top, p.left}), 1, groups);
  return at::conv2d(at::constant_pad_nd(x, {p.left, p.right, p.top, p.bottom}), weight, bias, stride,
                    at::IntArrayRef(0), 1, groups);
}

}  // namespace sparsight
