#include "sparsight/moe/experts/mlp_experts.h"

#include <array>

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/nn/packed_weights.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight {

void MlpExpertsOptions::declare(OptionSet& set) {
  set.choice("activation", &activation, activation_names(), "activation of the hidden layers");
  set.flag("bias", &bias, "add biases to the linear layers");
  set.integer("depth", &depth, {1, 100}, "number of hidden layers");
  set.real("dropout", &dropout, {0, 0.99}, "dropout after each activation while training (0.1 in GMoE)");
  KindOptions::declare(set);
}

MlpExperts::MlpExperts(const MlpExpertsOptions& options, const ExpertShape& shape)
    : Experts(options.recompute),
      init_(options.weights),
      activation_(parse_activation(options.activation)),
      dropout_(options.dropout) {
  for (int64_t i = 0; i <= options.depth; ++i)
    layers_.emplace_back(*this, ExpertLinearOptions{.number = i + 1,
                                                    .experts = shape.experts,
                                                    .in = i == 0 ? shape.width : shape.hidden,
                                                    .out = i == options.depth ? shape.output_width() : shape.hidden,
                                                    .bias = options.bias});
}

// The fused kernels handle one hidden layer between equal widths.
bool MlpExperts::is_fused() const {
  return layers_.size() == 2 && layers_[0].weight.size(1) == layers_[1].weight.size(2);
}

MoeMlpWeights MlpExperts::fused_weights(at::ScalarType type) const {
  const auto bias = [&](size_t i) { return layers_[i].bias.defined() ? layers_[i].bias.to(type) : at::Tensor(); };
  return {layers_[0].weight.to(type), bias(0), layers_[1].weight.to(type), bias(1)};
}

DropoutMask MlpExperts::hidden_dropout(const RowContext& context) const {
  const int64_t hidden = layers_[0].weight.size(2);
  return dropout_mask({context.number.size(0), hidden, context.number}, 1 - dropout_,
                      context.random.stream(cat(context.path, ".dropout1")));
}

std::unique_ptr<engine::Experts> MlpExperts::compile(const engine::WeightForm& form) const {
  if (is_fused()) {
    const ExpertLinear &up = layers_[0], &down = layers_[1];
    const auto plain = [](const at::Tensor& w) { return w.detach().to(at::kCPU, at::kFloat).contiguous(); };
    auto weights = std::make_shared<std::array<at::Tensor, 2>>(std::array{plain(up.weight), plain(down.weight)});
    const float *w1 = (*weights)[0].const_data_ptr<float>(), *w2 = (*weights)[1].const_data_ptr<float>();
    const std::vector<float> b1 = to_floats(up.bias), b2 = to_floats(down.bias);
    const auto bias = [](const std::vector<float>& b) { return b.empty() ? nullptr : b.data(); };
    const cpu::MlpShape shape{up.weight.size(0), up.weight.size(1), up.weight.size(2)};
    return std::make_unique<engine::MlpExperts>(
        form.type == WeightType::fp32 && !form.packs_experts
            ? cpu::PackedExperts(shape, w1, bias(b1), w2, bias(b2), weights)
            : cpu::PackedExperts(cpu::torch_threads(), shape, w1, bias(b1), w2, bias(b2), form.type),
        activation_);
  }
  std::vector<engine::ExpertLinear> layers;
  for (const ExpertLinear& layer : layers_) layers.push_back(layer.compile());
  return std::make_unique<engine::LayeredExperts>(std::move(layers), activation_);
}

at::Tensor MlpExperts::compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) {
  const bool drops = is_stochastic(context.mode) && context.number.defined();
  at::Tensor x = rows.to(expert_type(rows));
  if (is_fused())
    return moe_mlp(x, offsets, fused_weights(x.scalar_type()), activation_,
                   drops ? hidden_dropout(context) : DropoutMask{});
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) x = activate(x, activation_);
    if (i > 0 && drops)
      x = x * keep_mask_rows(x, {x.size(0), x.size(1), context.number}, 1 - dropout_,
                             context.random.stream(cat(context.path, ".dropout", i)));
    x = layers_[i](x, offsets);
  }
  return x;
}

at::Tensor MlpExperts::apply_routing(const at::Tensor& tokens, const Routing& routing, const ExpertContext& context) {
  if (!is_fused()) return Experts::apply_routing(tokens, routing, context);
  const auto type = expert_type(tokens);
  ExpertRows rows{routing_map(routing), routing.offsets, row_gates(routing)};
  if (is_stochastic(context.mode)) rows.dropout = hidden_dropout(row_context(routing, context));
  return expert_mlp(tokens.to(type), rows, fused_weights(type), {activation_, recompute()});
}

void MlpExperts::initialize(const InitRandom& random) {
  for (ExpertLinear& layer : layers_) layer.initialize(random, init_);
}

ExpertTensors MlpExperts::expert_tensors() const {
  ExpertTensors tensors;
  for (size_t i = 0; i + 1 < layers_.size(); ++i) {
    HiddenUnits units{{{cat("w", i + 1), 2}, {cat("w", i + 2), 1}}};
    if (layers_[i].bias.defined()) units.sides.push_back({cat("b", i + 1), 1});
    tensors.hidden.push_back(std::move(units));
  }
  return tensors;
}

Cost MlpExperts::cost(const ExpertUse& use) const {
  Cost expert = layers_[0].cost();
  for (size_t i = 1; i < layers_.size(); ++i)
    expert = expert + elementwise_cost(activation_operations(activation_) * layers_[i].inputs()) + layers_[i].cost();
  return experts_cost(expert, use);
}

}  // namespace sparsight
