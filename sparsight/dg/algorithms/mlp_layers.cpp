#include "sparsight/dg/algorithms/mlp_layers.h"

#include <cmath>

#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include "sparsight/nn/init.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {

std::vector<OptimizedParameter> trained(const NamedTensors& tensors, const std::string& prefix) {
  std::vector<OptimizedParameter> parameters;
  for (const auto& [name, tensor] : tensors) parameters.push_back({.name = prefix + name, .value = tensor});
  return parameters;
}

LinearLayer::LinearLayer(int64_t inputs, int64_t outputs, const StepRandom& random, const std::string& name)
    : weight(at::zeros({outputs, inputs})), bias(at::zeros({outputs})) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  init_uniform(weight, bound, random.stream(name + ".weight"));
  init_uniform(bias, bound, random.stream(name + ".bias"));
  weight.set_requires_grad(true);
  bias.set_requires_grad(true);
}

at::Tensor LinearLayer::operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }

MlpLayers::MlpLayers(const std::vector<int64_t>& widths, const StepRandom& random, const std::string& name)
    : name_(name) {
  for (size_t i = 0; i + 1 < widths.size(); ++i)
    layers_.emplace_back(widths[i], widths[i + 1], random, cat(name, ".", i));
}

at::Tensor MlpLayers::forward(const at::Tensor& input, double dropout, const StepRandom& random) const {
  at::Tensor x = input.to(at::kFloat);
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i](x);
    if (i + 1 == layers_.size()) break;
    if (dropout > 0) x = x * keep_mask_like(x, x.sizes(), 1 - dropout, random.stream(cat(name_, ".dropout", i)));
    x = x.relu();
  }
  return x;
}

at::Tensor MlpLayers::forward(const at::Tensor& input, double leak) const {
  at::Tensor x = input.to(at::kFloat);
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i](x);
    if (i + 1 < layers_.size()) x = at::leaky_relu(x, leak);
  }
  return x;
}

NamedTensors MlpLayers::tensors() const {
  NamedTensors all;
  for (size_t i = 0; i < layers_.size(); ++i) {
    all.emplace_back(cat(i, ".weight"), layers_[i].weight);
    all.emplace_back(cat(i, ".bias"), layers_[i].bias);
  }
  return all;
}

}  // namespace sparsight
