#include "sparsight/nn/packed_convs.h"

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

at::Tensor doubles(const at::Tensor& x) { return x.detach().to(at::kCPU, at::kDouble); }

}  // namespace

BatchNormAffine batch_norm_affine(const BatchNormImpl& norm) {
  const BatchNormTensors& t = norm.tensors;
  const at::Tensor scale = doubles(t.weight) / (doubles(t.running_var) + norm.options().epsilon).sqrt();
  return {scale, doubles(t.bias) - doubles(t.running_mean) * scale};
}

engine::ConvStep conv_step(const ConvImpl& conv, WeightType type, const BatchNormImpl* folded) {
  const ConvOptions& options = conv.options();
  at::Tensor weight = doubles(conv.weight),
             bias = conv.bias.defined() ? doubles(conv.bias) : at::zeros({options.out}, at::kDouble);
  if (folded) {
    const BatchNormAffine affine = batch_norm_affine(*folded);
    weight = weight * affine.scale.view({-1, 1, 1, 1});
    bias = bias * affine.scale + affine.shift;
  }
  engine::ConvStep step;
  const std::vector<float> weights = to_floats(weight), biases = to_floats(bias);
  if (options.groups == 1) {
    step.conv = cpu::PackedConv(weights.data(), biases.data(), options.in, options.out, options.kernel, type);
  } else {
    SPARSIGHT_CHECK(options.groups == options.in && options.in == options.out);
    step.depthwise = cpu::DepthwiseConv(weights.data(), biases.data(), options.out, options.kernel, type);
  }
  step.kernel = options.kernel, step.stride = options.stride;
  step.same = options.padding == ConvPadding::same;
  return step;
}

engine::Affine packed_affine(const BatchNormImpl& norm) {
  const BatchNormAffine affine = batch_norm_affine(norm);
  return {to_floats(affine.scale), to_floats(affine.shift)};
}

engine::GroupNorm packed_group_norm(const GroupNormImpl& norm) {
  return {to_floats(norm.weight), to_floats(norm.bias), norm.groups(), GroupNormImpl::kEpsilon};
}

}  // namespace sparsight
