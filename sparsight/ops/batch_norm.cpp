#include "sparsight/ops/batch_norm.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sparsight/kernels/elementwise/batch_norm.h"
#include "sparsight/ops/channels_last.h"
#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

cpu::ChannelRows channel_rows(const at::Tensor& x) { return {x.size(0) * x.size(2) * x.size(3), x.size(1)}; }

// Returns y, the batch's mean and unbiased variance, and 1 / sqrt(variance + epsilon).
variable_list normalise(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const cpu::ChannelRows shape = channel_rows(x);
  const auto rows = static_cast<double>(shape.rows);
  std::vector<double> means(static_cast<size_t>(shape.channels)), variances(means.size());
  cpu::batch_moments(cpu::torch_threads(), shape, x.const_data_ptr<float>(), means.data(), variances.data());
  const auto per_channel = [&] { return at::empty({shape.channels}); };
  const at::Tensor mean = per_channel(), variance = per_channel(), inverse = per_channel(), scale = per_channel(),
                   shift = per_channel();
  for (int64_t c = 0; c < shape.channels; ++c) {
    const double average = means[static_cast<size_t>(c)], of_batch = variances[static_cast<size_t>(c)];
    const double factor = 1 / std::sqrt(of_batch + epsilon), w = weight.const_data_ptr<float>()[c];
    mean.data_ptr<float>()[c] = static_cast<float>(average);
    variance.data_ptr<float>()[c] = static_cast<float>(of_batch * rows / std::max(1.0, rows - 1));
    inverse.data_ptr<float>()[c] = static_cast<float>(factor);
    scale.data_ptr<float>()[c] = static_cast<float>(w * factor);
    shift.data_ptr<float>()[c] = static_cast<float>(bias.const_data_ptr<float>()[c] - average * w * factor);
  }
  const at::Tensor y = at::empty_like(x, {}, kChannelsLast);
  cpu::scale_channels(cpu::torch_threads(), shape, x.const_data_ptr<float>(), scale.const_data_ptr<float>(),
                      shift.const_data_ptr<float>(), y.data_ptr<float>());
  return {y, mean, variance, inverse};
}

class BatchNormMaps : public torch::autograd::Function<BatchNormMaps> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& bias, double epsilon) {
    const variable_list all = normalise(x, weight, bias, epsilon);
    context->save_for_backward({x, weight, all[1], all[3]});
    context->mark_non_differentiable({all[1], all[2]});
    return {all[0], all[1], all[2]};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("batch norm has");
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], grad = grads[0].contiguous(kChannelsLast);
    const at::Tensor weight_grad = at::empty_like(weight), bias_grad = at::empty_like(weight);
    cpu::BatchNormBackward p;
    p.shape = channel_rows(x);
    p.grad = grad.const_data_ptr<float>(), p.x = x.const_data_ptr<float>();
    p.weight = weight.const_data_ptr<float>(), p.mean = saved[2].const_data_ptr<float>();
    p.inverse = saved[3].const_data_ptr<float>();
    at::Tensor x_grad;
    if (context->needs_input_grad(0)) {
      x_grad = at::empty_like(x, {}, kChannelsLast);
      p.x_grad = x_grad.data_ptr<float>();
    }
    p.weight_grad = weight_grad.data_ptr<float>(), p.bias_grad = bias_grad.data_ptr<float>();
    cpu::batch_norm_backward(cpu::torch_threads(), p);
    return {x_grad, weight_grad, bias_grad, {}};
  }
};

}  // namespace

NormedBatch batch_norm_maps(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const at::Tensor maps = x.contiguous(kChannelsLast), w = weight.contiguous(), b = bias.contiguous();
  const variable_list all =
      at::GradMode::is_enabled() ? BatchNormMaps::apply(maps, w, b, epsilon) : normalise(maps, w, b, epsilon);
  return {all[0], all[1], all[2]};
}

}  // namespace sparsight
