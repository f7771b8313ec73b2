#include "sparsight/nn/residual_block.h"

namespace sparsight {

ResidualBlockImpl::ResidualBlockImpl(const ResidualBlockOptions& options)
    : conv1_(register_module("conv1", Conv(ConvOptions{options.in, options.out, 3, options.stride}))),
      norm1_(register_module("norm1", group_norm_of_eights(options.out))),
      conv2_(register_module("conv2", Conv(ConvOptions{options.out, options.out}))),
      norm2_(register_module("norm2", group_norm_of_eights(options.out))),
      branch_(options.branch) {
  if (!branch_ && options.has_projection())
    shortcut_ = register_module("shortcut", Conv(ConvOptions{options.in, options.out, 1, options.stride}));
}

std::vector<engine::ConvStep> ResidualBlockImpl::conv_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  if (shortcut_) steps.push_back(conv_step(*shortcut_, type));
  engine::ConvStep first = conv_step(*conv1_, type);
  first.norm = packed_group_norm(*norm1_);
  first.relu = true;
  first.to = engine::ConvBuffer::hidden;
  steps.push_back(std::move(first));
  engine::ConvStep second = conv_step(*conv2_, type);
  second.from = engine::ConvBuffer::hidden;
  second.norm = packed_group_norm(*norm2_);
  second.has_residual = second.relu = !branch_;
  second.residual = shortcut_ ? engine::ConvBuffer::output : engine::ConvBuffer::input;
  steps.push_back(std::move(second));
  return steps;
}

at::Tensor ResidualBlockImpl::forward(const at::Tensor& x) {
  const at::Tensor hidden = at::relu(norm1_->forward(conv1_->forward(x)));
  const at::Tensor branch = norm2_->forward(conv2_->forward(hidden));
  return branch_ ? branch : at::relu((shortcut_ ? shortcut_->forward(x) : x) + branch);
}

std::vector<PartCost> ResidualBlockImpl::cost(const std::string& path, MapSize& map) const {
  const MapSize in = map;
  map = conv1_->output(in);
  const int64_t channels = conv1_->weight.size(0), positions = map.positions();
  const std::string text = map_text(channels, map);
  const Cost norm = norm1_->cost(), relu = elementwise_cost(channels), residual = elementwise_cost(channels);
  std::vector<PartCost> parts{{path + ".conv1", conv1_->cost(in), text},
                              {path + ".norm1", on_units(norm + relu, positions), text},
                              {path + ".conv2", conv2_->cost(map), text},
                              {path + ".norm2", on_units(branch_ ? norm : norm + relu + residual, positions), text}};
  if (shortcut_) parts.push_back({path + ".shortcut", shortcut_->cost(in), text});
  return parts;
}

}  // namespace sparsight
