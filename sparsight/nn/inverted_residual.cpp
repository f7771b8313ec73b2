#include "sparsight/nn/inverted_residual.h"

#include "sparsight/core/error.h"
#include "sparsight/nn/conv_parts.h"

namespace sparsight {

engine::ConvStep relu6_conv_step(const ConvImpl& conv, const BatchNormImpl& norm, WeightType type) {
  engine::ConvStep step = conv_step(conv, type, &norm);
  step.relu = true;
  step.limit = 6;
  return step;
}

InvertedResidual::InvertedResidual(const InvertedResidualOptions& options) : options_(options) {
  const auto sequence = register_module("conv", std::make_shared<torch::nn::Module>());
  std::vector<std::string> norm_names;
  int64_t next = 0;
  const auto add = [&](torch::nn::Module& owner, const std::string& prefix, int64_t number, const ConvOptions& conv) {
    names_.push_back(cat(prefix, number));
    norm_names.push_back(cat(prefix, number + 1));
    convs_.push_back(owner.register_module(cat(number), Conv(conv)));
    norms_.push_back(owner.register_module(cat(number + 1), torchvision_norm(conv.out)));
  };
  const auto add_activated = [&](const ConvOptions& conv) {
    const auto layer = sequence->register_module(cat(next), std::make_shared<torch::nn::Module>());
    add(*layer, cat("conv.", next++, "."), 0, conv);
  };
  const int64_t hidden = options.in * options.expand;
  if (options.expand != 1) add_activated({.in = options.in, .out = hidden, .kernel = 1});
  add_activated({.in = hidden, .out = hidden, .stride = options.stride, .groups = hidden});
  add(*sequence, "conv.", next, {.in = hidden, .out = options.out, .kernel = 1});
  names_.insert(names_.end(), norm_names.begin(), norm_names.end());
}

std::vector<engine::ConvStep> InvertedResidual::conv_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  engine::ConvBuffer from = engine::ConvBuffer::input;
  for (size_t i = 0; i + 1 < convs_.size(); ++i) {
    engine::ConvStep step = relu6_conv_step(*convs_[i], *norms_[i], type);
    step.from = from;
    step.to = from = i == 0 ? engine::ConvBuffer::hidden : engine::ConvBuffer::second_hidden;
    steps.push_back(std::move(step));
  }
  engine::ConvStep last = conv_step(*convs_.back(), type, norms_.back().get());
  last.from = from;
  last.has_residual = adds_input();
  steps.push_back(std::move(last));
  return steps;
}

at::Tensor InvertedResidual::forward(const at::Tensor& x, bool batch_statistics) {
  at::Tensor y = x;
  for (size_t i = 0; i < convs_.size(); ++i) {
    y = norms_[i]->forward(convs_[i]->forward(y), batch_statistics);
    if (i + 1 < convs_.size()) y = at::relu6(y);
  }
  return adds_input() ? x + y : y;
}

std::vector<PartCost> InvertedResidual::cost(const std::string& path, MapSize& map) const {
  std::vector<PartCost> parts;
  const size_t count = convs_.size();
  for (size_t i = 0; i < count; ++i) {
    parts.push_back(conv_part(cat(path, ".", names_[i]), convs_[i], map));
    const std::string norm = cat(path, ".", names_[count + i]);
    if (i + 1 < count)
      parts.push_back(norm_part(norm, norms_[i], map));
    else
      parts.push_back({norm, on_units(norms_[i]->cost(), map.positions()), map_text(options_.out, map)});
  }
  if (adds_input()) parts.back().cost = parts.back().cost + on_units(elementwise_cost(options_.out), map.positions());
  return parts;
}

}  // namespace sparsight
