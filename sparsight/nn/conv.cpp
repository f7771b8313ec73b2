#include "sparsight/nn/conv.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/nn/glorot.h"
#include "sparsight/nn/weight_init.h"

namespace sparsight {
namespace {

// Zeros that "same" adds to an axis of size `side`, both edges together.
int64_t same_padding(int64_t side, const ConvOptions& options) {
  const int64_t positions = (side + options.stride - 1) / options.stride;
  return std::max<int64_t>(0, (positions - 1) * options.stride + options.kernel - side);
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
  if (options_.padding == ConvPadding::centred)
    return at::conv2d(x, weight, bias, options_.stride, options_.kernel / 2, 1, options_.groups);
  const int64_t rows = same_padding(x.size(2), options_), columns = same_padding(x.size(3), options_);
  if (rows % 2 == 0 && columns % 2 == 0)
    return at::conv2d(x, weight, bias, options_.stride, at::IntArrayRef({rows / 2, columns / 2}), 1, options_.groups);
  const at::Tensor padded = at::constant_pad_nd(x, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
  return at::conv2d(padded, weight, bias, options_.stride, at::IntArrayRef(0), 1, options_.groups);
}

void ConvImpl::initialize(const InitRandom& random) {
  const int64_t positions = options_.kernel * options_.kernel, fan_in = options_.in / options_.groups * positions,
                fan_out = options_.out * positions;
  const RandomStream stream = random.stream("weight");
  if (options_.init == ConvInit::torch_default)
    return init_weights(weight, bias, {fan_in, fan_out}, {.init = "torch_linear"}, stream, random.stream("bias"));
  if (options_.init == ConvInit::glorot_uniform)
    init_glorot_uniform(weight, fan_in, fan_out, stream);
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
