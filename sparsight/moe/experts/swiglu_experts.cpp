#include "sparsight/moe/experts/swiglu_experts.h"

#include "sparsight/ops/activation.h"

namespace sparsight {

void SwigluExpertsOptions::declare(OptionSet& set) {
  set.flag("bias", &bias, "add biases to the linear layers");
  KindOptions::declare(set);
}

SwigluExperts::SwigluExperts(const SwigluExpertsOptions& options, const ExpertShape& shape)
    : Experts(options.recompute),
      init_(options.weights),
      in_(*this, {1, shape.experts, shape.width, 2 * shape.hidden, options.bias}),
      out_(*this, {2, shape.experts, shape.hidden, shape.output_width(), options.bias}) {}

at::Tensor SwigluExperts::compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext&) {
  const std::vector<at::Tensor> halves = in_(rows.to(expert_type(rows)), offsets).chunk(2, 1);
  return out_(at::silu(halves[0]) * halves[1], offsets);
}

void SwigluExperts::initialize(const InitRandom& random) {
  in_.initialize(random, init_);
  out_.initialize(random, init_);
}

std::unique_ptr<engine::Experts> SwigluExperts::compile(const engine::WeightForm&) const {
  std::vector<engine::ExpertLinear> layers;
  layers.push_back(in_.compile());
  layers.push_back(out_.compile());
  return std::make_unique<engine::LayeredExperts>(std::move(layers), Activation::silu, /*gated=*/true);
}

ExpertTensors SwigluExperts::expert_tensors() const {
  HiddenUnits units{{{"w1", 2, 2}, {"w2", 1}}};
  if (in_.bias.defined()) units.sides.push_back({"b1", 1, 2});
  return {.hidden = {units}};
}

Cost SwigluExperts::cost(const ExpertUse& use) const {
  const Cost gating = elementwise_cost((activation_operations(Activation::silu) + 1) * out_.inputs());
  return experts_cost(in_.cost() + gating + out_.cost(), use);
}

}  // namespace sparsight
