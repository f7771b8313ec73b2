#include "sparsight/moe/experts/conv_experts.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/conv_experts.h"
#include "sparsight/ops/grouped_linear.h"

namespace sparsight {

void ConvExpertsOptions::declare(OptionSet& set) {
  set.integer("channels", &channels, {0, 1 << 20}, "channels of the square patch in a row; 0: the patch is one pixel");
  set.integer("kernel", &kernel, {0, 1024}, "kernel size of the convolution; 0: that of the patch");
  set.integer("padding", &padding, {0, 1024}, "zero padding around each patch");
  set.integer("stride", &stride, {1, 1024}, "stride of the convolution");
  set.choice("activation", &activation, activation_names(), "activation after the convolution");
  set.choice("pool", &pool, {"sum", "mean"}, "pooling over positions");
  set.flag("bias", &bias, "add a bias to each filter");
  set.choice(
      "output", &output, {"trained", "normal", "signs"},
      "the linear layer from filters to the output: trained, or fixed to samples of N(0,1) or to +1 and -1 by expert");
  KindOptions::declare(set);
}

PatchKernel ConvExpertsOptions::kernel_for(const PatchShape& patch) const {
  const PatchKernel fitting{kernel == 0 ? patch.height : kernel, padding, stride};
  if (fitting.side > patch.height + 2 * padding)
    fail_usage("[experts] kernel = ", fitting.side, " is larger than the patch of ", patch.height, "x", patch.width,
               " with padding = ", padding, "; lower kernel or raise padding");
  return fitting;
}

ConvExperts::ConvExperts(const ConvExpertsOptions& options, const ExpertShape& shape)
    : Experts(options.recompute),
      options_(options),
      patch_(square_patch(options.channels, shape.width)),
      kernel_(options.kernel_for(patch_)),
      activation_(parse_activation(options.activation)) {
  const int64_t taps = patch_.channels * kernel_.side * kernel_.side;
  w1 = register_parameter("w1", parameter_zeros({shape.experts, taps, shape.hidden}));
  if (options.bias) b1 = register_parameter("b1", parameter_zeros({shape.experts, shape.hidden}));
  const at::Tensor output = parameter_zeros({shape.experts, shape.hidden, shape.output_width()});
  w2 = options.output == "trained" ? register_parameter("w2", output) : register_buffer("w2", output);
}

at::Tensor ConvExperts::compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext&) {
  const auto type = expert_type(rows);
  const at::Tensor bias = b1.defined() ? b1.to(type) : b1;
  const at::Tensor map = activate(patch_conv(rows.to(type), offsets, w1.to(type), bias, patch_, kernel_), activation_);
  const at::Tensor pooled = options_.pool == "mean" ? map.mean(1) : map.sum(1);  // [R,F]
  return grouped_linear(pooled, offsets, w2.to(type));
}

// The weights of expert e are +1 for output e modulo O and -1 for the others. With a single output (two classes) they
// are -1 for even e and +1 for odd e: expert 1 votes for class 1.
void ConvExperts::set_signs() {
  const at::Tensor expert = at::arange(w2.size(0)).view({-1, 1, 1}), outputs = at::arange(w2.size(2));
  const at::Tensor own = w2.size(2) == 1 ? expert.remainder(2) == 1 : expert.remainder(w2.size(2)) == outputs;
  w2.copy_((own.to(at::kFloat) * 2 - 1).expand_as(w2));
}

void ConvExperts::initialize(const InitRandom& random) {
  init_weights(w1, b1, {w1.size(1), w1.size(2) * kernel_.side * kernel_.side}, options_.weights, random.stream("w1"),
               random.stream("b1"));
  at::Tensor no_bias;
  const torch::NoGradGuard no_grad;
  if (options_.output == "signs")
    set_signs();
  else if (options_.output == "normal")
    init_normal(w2, 1.0, random.stream("w2"));
  else
    init_weights(w2, no_bias, {w2.size(1), w2.size(2)}, options_.weights, random.stream("w2"), random.stream("b2"));
}

std::unique_ptr<engine::Experts> ConvExperts::compile(const engine::WeightForm&) const {
  return std::make_unique<engine::PatchConvExperts>(
      engine::PatchWindows{patch_.channels, patch_.height, kernel_.side, kernel_.padding, kernel_.stride},
      expert_linear(w1, b1), activation_, options_.pool == "mean", expert_linear(w2, {}));
}

ExpertTensors ConvExperts::expert_tensors() const {
  HiddenUnits units{{{"w1", 2}, {"w2", 1}}};
  if (b1.defined()) units.sides.push_back({"b1", 1});
  return {.hidden = {units}};
}

Cost ConvExperts::cost(const ExpertUse& use) const {
  const int64_t filters = w1.size(2), outputs = w2.size(2), positions = kernel_positions(patch_, kernel_);
  const Cost filter = conv_cost({patch_.channels, filters, kernel_.side, options_.bias});
  const int64_t pooled = (activation_operations(activation_) + 1) * filters;  // and summed
  Cost output = linear_cost(filters, outputs, false);
  if (options_.output != "trained")  // fixed weights: read, but neither parameters nor multiply-adds
    output = {.elementwise = 2 * filters * outputs, .weight_bytes = output.weight_bytes};
  return experts_cost(on_units(filter + elementwise_cost(pooled), positions) + output, use);
}

}  // namespace sparsight
