#include "sparsight/nn/resnet_block.h"

#include "sparsight/core/error.h"
#include "sparsight/nn/conv_parts.h"

namespace sparsight {

ResnetBlock::ResnetBlock(const ResnetBlockOptions& options) : branch_(options.branch) {
  const auto add = [&](int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    const std::string number = std::to_string(convs_.size() + 1);
    convs_.push_back(register_module("conv" + number, Conv(ConvOptions{in, out, kernel, stride})));
    norms_.push_back(register_module("bn" + number, torchvision_norm(out)));
  };
  const int64_t width = options.width;
  if (options.bottleneck) {
    add(options.in, width, 1, 1);
    add(width, width, 3, options.stride);
    add(width, options.out(), 1, 1);
  } else {
    add(options.in, width, 3, options.stride);
    add(width, options.out(), 3, 1);
  }
  if (branch_ || !options.has_projection()) return;
  const auto downsample = register_module("downsample", std::make_shared<torch::nn::Module>());
  shortcut_ = downsample->register_module("0", Conv(ConvOptions{options.in, options.out(), 1, options.stride}));
  shortcut_norm_ = downsample->register_module("1", torchvision_norm(options.out()));
}

std::vector<engine::ConvStep> ResnetBlock::conv_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  if (shortcut_) steps.push_back(conv_step(*shortcut_, type, shortcut_norm_.get()));
  engine::ConvBuffer from = engine::ConvBuffer::input;
  for (size_t i = 0; i < convs_.size(); ++i) {
    engine::ConvStep step = conv_step(*convs_[i], type, norms_[i].get());
    step.relu = !branch_ || i + 1 < convs_.size();
    step.from = from;
    if (i + 1 == convs_.size()) {
      step.has_residual = !branch_;
      step.residual = shortcut_ ? engine::ConvBuffer::output : engine::ConvBuffer::input;
    } else {
      step.to = from = i % 2 == 0 ? engine::ConvBuffer::hidden : engine::ConvBuffer::second_hidden;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

at::Tensor ResnetBlock::forward(const at::Tensor& x, bool batch_statistics) {
  at::Tensor y = x;
  for (size_t i = 0; i < convs_.size(); ++i) {
    y = norms_[i]->forward(convs_[i]->forward(y), batch_statistics);
    if (i + 1 < convs_.size()) y = at::relu(y);
  }
  if (branch_) return y;
  return at::relu(y + (shortcut_ ? shortcut_norm_->forward(shortcut_->forward(x), batch_statistics) : x));
}

std::vector<PartCost> ResnetBlock::cost(const std::string& path, MapSize& map) const {
  MapSize in = map;
  std::vector<PartCost> parts;
  for (size_t i = 0; i < convs_.size(); ++i) {
    parts.push_back(conv_part(cat(path, ".conv", i + 1), convs_[i], map));
    parts.push_back(norm_part(cat(path, ".bn", i + 1), norms_[i], map));
  }
  const int64_t channels = convs_.back()->weight.size(0);
  if (branch_) {  // neither relu nor sum
    parts.back().cost = on_units(norms_.back()->cost(), map.positions());
    return parts;
  }
  parts.back().cost = parts.back().cost + on_units(elementwise_cost(channels), map.positions());  // the sum
  if (!shortcut_) return parts;
  parts.push_back(conv_part(path + ".downsample.0", shortcut_, in));
  parts.push_back({path + ".downsample.1", on_units(shortcut_norm_->cost(), map.positions()), map_text(channels, map)});
  return parts;
}

}  // namespace sparsight
