#include "sparsight/nn/conv.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/nn/glorot.h"
#include "sparsight/nn/linear.h"
#include "sparsight/nn/weight_init.h"
#include "sparsight/ops/conv2d.h"

namespace sparsight {
namespace {

// Zeros that "same" adds to an axis of size `side`, both edges together.
int64_t same_padding(int64_t side, const ConvOptions& options) {
  const int64_t positions = (side + options.stride - 1) / options.stride;
  return std::max<int64_t>(0, (positions - 1) * options.stride + options.kernel - side);
}

MapPadding map_padding(int64_t height, int64_t width, const ConvOptions& options) {
  if (options.padding == ConvPadding::centred) {
    const int64_t each = options.kernel / 2;
    return {each, each, each, each};
  }
  const int64_t rows = same_padding(height, options), columns = same_padding(width, options);
  return {rows / 2, rows - rows / 2, columns / 2, columns - columns / 2};
}

// Makes the first outputs those inputs at the same position.
void pass_inputs(at::Tensor& weight) {
  const torch::NoGradGuard no_grad;
  const int64_t count = std::min(weight.size(0), weight.size(1)), centre = weight.size(2) / 2;
  weight.narrow(0, 0, count).zero_();
  weight.select(3, centre).select(2, centre).diagonal().fill_(1);
}

}  // namespace

ConvImpl::ConvImpl(const ConvOptions& options)
    : weight(register_parameter(
          "weight", parameter_zeros({options.out, options.in / options.groups, options.kernel, options.kernel}))),
      options_(options) {
  SPARSIGHT_CHECK(options.in % options.groups == 0 && options.out % options.groups == 0);
  if (options.bias) bias = register_parameter("bias", parameter_zeros({options.out}));
}

at::Tensor ConvImpl::forward(const at::Tensor& x) {
  const MapPadding padding = map_padding(x.size(2), x.size(3), options_);
  if (options_.groups == 1 && suits_kernels(x) && suits_kernels(weight))
    return conv2d(x, weight, bias, options_.stride, padding);
  return torch_conv2d(x, weight, bias, options_.stride, padding, options_.groups);
}

void ConvImpl::initialize(const InitRandom& random) {
  const int64_t positions = options_.kernel * options_.kernel, fan_in = options_.in / options_.groups * positions,
                fan_out = options_.out * positions;
  const RandomStream stream = random.stream("weight");
  if (options_.init == ConvInit::torch_default || options_.init == ConvInit::dirac) {
    init_weights(weight, bias, {fan_in, fan_out}, {.init = "torch_linear"}, stream, random.stream("bias"));
    if (options_.init == ConvInit::dirac) pass_inputs(weight);
    return;
  }
  if (options_.init == ConvInit::glorot_uniform)
    init_glorot_uniform(weight, fan_in, fan_out, stream);
  else if (options_.init == ConvInit::vit_normal)
    init_normal(weight, kVitStd, stream);
  else
    init_normal(weight, std::sqrt(2 / static_cast<double>(fan_out)), stream);
  const torch::NoGradGuard no_grad;
  if (bias.defined()) bias.zero_();
}

MapSize ConvImpl::output(MapSize in) const {
  const auto positions = [&](int64_t side) { return (side + options_.stride - 1) / options_.stride; };
  return {positions(in.height), positions(in.width)};
}

Cost ConvImpl::cost(MapSize in) const {
  const ConvShape one{options_.in / options_.groups, options_.out, options_.kernel, options_.bias};  // what it reads
  return on_units(conv_cost(one), output(in).positions());
}

}  // namespace sparsight
