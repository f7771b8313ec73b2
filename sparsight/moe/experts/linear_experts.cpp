#include "sparsight/moe/experts/linear_experts.h"

namespace sparsight {

void LinearExpertsOptions::declare(OptionSet& set) {
  set.flag("bias", &bias, "add a bias");
  KindOptions::declare(set);
}

LinearExperts::LinearExperts(const LinearExpertsOptions& options, const ExpertShape& shape)
    : Experts(options.recompute),
      init_(options.weights),
      layer_(*this, {1, shape.experts, shape.width, shape.output_width(), options.bias}) {}

at::Tensor LinearExperts::compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext&) {
  return layer_(rows.to(expert_type(rows)), offsets);
}

void LinearExperts::initialize(const InitRandom& random) { layer_.initialize(random, init_); }

std::unique_ptr<engine::Experts> LinearExperts::compile(const engine::WeightForm&) const {
  std::vector<engine::ExpertLinear> layers;
  layers.push_back(layer_.compile());
  return std::make_unique<engine::LayeredExperts>(std::move(layers), Activation::relu);  // between no two layers
}

ExpertTensors LinearExperts::expert_tensors() const { return {}; }

Cost LinearExperts::cost(const ExpertUse& use) const { return experts_cost(layer_.cost(), use); }

}  // namespace sparsight
