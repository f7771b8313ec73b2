#include "sparsight/nn/conv_shortcut.h"

#include "sparsight/nn/conv_parts.h"

namespace sparsight {

ConvShortcut::ConvShortcut(int64_t in, int64_t out, int64_t stride, bool with_norm)
    : conv_(register_module("0", Conv(ConvOptions{in, out, 1, stride}))) {
  if (with_norm) norm_ = register_module("1", torchvision_norm(out));
}

at::Tensor ConvShortcut::forward(const at::Tensor& x, bool batch_statistics) {
  const at::Tensor y = conv_->forward(x);
  return norm_ ? norm_->forward(y, batch_statistics) : y;
}

std::vector<PartCost> ConvShortcut::cost(const std::string& path, MapSize& map) const {
  std::vector<PartCost> parts{conv_part(path + ".0", conv_, map)};
  if (norm_)
    parts.push_back({path + ".1", on_units(norm_->cost(), map.positions()), map_text(conv_->options().out, map)});
  return parts;
}

std::vector<engine::ConvStep> ConvShortcut::conv_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  steps.push_back(conv_step(*conv_, type, norm_ ? norm_.get() : nullptr));
  return steps;
}

}  // namespace sparsight
