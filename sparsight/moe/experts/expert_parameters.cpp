#include "sparsight/moe/experts/expert_parameters.h"

#include <ATen/autocast_mode.h>

#include "sparsight/core/error.h"
#include "sparsight/nn/packed_weights.h"
#include "sparsight/ops/grouped_linear.h"
#include "sparsight/ops/product_type.h"

namespace sparsight {

void KindOptions::declare(OptionSet& set) {
  weights.declare(set);
  set.flag("recompute", &recompute,
           "recompute the experts in the backward pass instead of keeping their activations (less memory, slower)");
}

at::ScalarType expert_type(const at::Tensor& rows) {
  const auto device = rows.device().type();
  const bool in_products = rows.is_cpu() && rows.scalar_type() == torch::kFloat && product_type() == ProductType::bf16;
  const bool lowered =
      rows.scalar_type() != torch::kDouble && at::autocast::is_autocast_enabled(device) && !in_products;
  return lowered ? at::autocast::get_autocast_dtype(device) : rows.scalar_type();
}

ExpertLinear::ExpertLinear(torch::nn::Module& owner, const ExpertLinearOptions& options)
    : weight(owner.register_parameter(cat("w", options.number),
                                      parameter_zeros({options.experts, options.in, options.out}))),
      options_(options) {
  if (options.bias)
    bias = owner.register_parameter(cat("b", options.number), parameter_zeros({options.experts, options.out}));
}

at::Tensor ExpertLinear::operator()(const at::Tensor& rows, const at::Tensor& offsets) const {
  const auto type = rows.scalar_type();
  return grouped_linear(rows, offsets, weight.to(type), bias.defined() ? bias.to(type) : at::Tensor());
}

void ExpertLinear::initialize(const InitRandom& random, const WeightInit& weights) {
  init_weights(weight, bias, {options_.in, options_.out}, weights, random.stream(cat("w", options_.number)),
               random.stream(cat("b", options_.number)));
}

Cost ExpertLinear::cost() const { return linear_cost(options_.in, options_.out, options_.bias); }

engine::ExpertLinear ExpertLinear::compile() const { return expert_linear(weight, bias); }

engine::ExpertLinear expert_linear(const at::Tensor& weight, const at::Tensor& bias) {
  return {weight.size(0), weight.size(1), weight.size(2), to_floats(weight), to_floats(bias)};
}

}  // namespace sparsight
