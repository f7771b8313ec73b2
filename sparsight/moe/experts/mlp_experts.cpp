#include "sparsight/moe/experts/mlp_experts.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch.h"
#include "sparsight/moe/experts/packed_mlp_experts.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {

void MlpExpertsOptions::declare(OptionSet& set) {
  set.choice("activation", &activation, activation_names(), "activation of the hidden layers");
  set.flag("bias", &bias, "biases in the linear maps");
  set.integer("depth", &depth, {1, 100}, "hidden layers");
  set.real("dropout", &dropout, {0, 0.99}, "dropout after each activation while training (0.1 in GMoE)");
  KindOptions::declare(set);
}

MlpExperts::MlpExperts(const MlpExpertsOptions& options, const ExpertShape& shape)
    : Experts(options.recompute), activation_(parse_activation(options.activation)), dropout_(options.dropout) {
  for (int64_t i = 0; i <= options.depth; ++i)
    layers_.emplace_back(*this, ExpertLinearOptions{.number = i + 1,
                                                    .experts = shape.experts,
                                                    .in = i == 0 ? shape.width : shape.hidden,
                                                    .out = i == options.depth ? shape.output_width() : shape.hidden,
                                                    .bias = options.bias});
}

// The kernels know one hidden layer between equal widths.
bool MlpExperts::is_fused() const {
  return layers_.size() == 2 && layers_[0].weight.size(1) == layers_[1].weight.size(2);
}

MoeMlpWeights MlpExperts::fused_weights(at::ScalarType type) const {
  const auto bias = [&](size_t i) { return layers_[i].bias.defined() ? layers_[i].bias.to(type) : at::Tensor(); };
  return {layers_[0].weight.to(type), bias(0), layers_[1].weight.to(type), bias(1)};
}

std::shared_ptr<Experts> MlpExperts::packed(WeightType type) const {
  if (!is_fused()) return nullptr;
  return std::make_shared<PackedMlpExperts>(fused_weights(at::kFloat), type, activation_, dropout_ > 0);
}

at::Tensor MlpExperts::forward(const at::Tensor& rows, const at::Tensor& offsets) {
  return forward_drawing(rows, offsets, {});
}

at::Tensor MlpExperts::forward_drawing(const at::Tensor& rows, const at::Tensor& offsets, const RowDraws& draws) {
  const bool drops = dropout_ > 0 && draws.number.defined();
  at::Tensor x = rows.to(expert_type(rows));
  if (is_fused() && !drops) return moe_mlp(x, offsets, fused_weights(x.scalar_type()), activation_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) x = activate(x, activation_);
    if (i > 0 && drops)
      x = x *
          keep_mask_rows(x, draws.number, x.size(1), 1 - dropout_, draws.random.stream(cat(draws.path, ".dropout", i)));
    x = layers_[i](x, offsets);
  }
  return x;
}

at::Tensor MlpExperts::apply_routing(const at::Tensor& tokens, const Routing& routing,
                                     const std::optional<ExpertRandom>& random) {
  if (!is_fused() || (random && draws())) return Experts::apply_routing(tokens, routing, random);
  const auto type = expert_type(tokens);
  return expert_mlp(tokens.to(type), {routing_map(routing), routing.offsets, row_gates(routing)}, fused_weights(type),
                    {activation_, recompute()});
}

void MlpExperts::initialize(const InitRandom& random) {
  for (ExpertLinear& layer : layers_) layer.initialize(random);
}

}  // namespace sparsight
