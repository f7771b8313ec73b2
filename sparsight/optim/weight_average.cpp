#include "sparsight/optim/weight_average.h"

#include <algorithm>
#include <map>

#include <ATen/core/grad_mode.h>

namespace sparsight {

WeightAverage::WeightAverage(NamedTensors weights, double decay) : weights_(std::move(weights)), decay_(decay) {
  at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : weights_) average_.emplace_back(name, tensor.detach().clone());
}

void WeightAverage::update(int64_t updates) {
  at::NoGradGuard no_grad;
  const double count = static_cast<double>(updates);
  const double decay = std::min(decay_, (1 + count) / (10 + count));
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].second.is_floating_point()) {
      average_[i].second.lerp_(weights_[i].second, 1 - decay);
    } else {
      average_[i].second.copy_(weights_[i].second);
    }
  }
}

NamedTensors WeightAverage::tensors() const { return average_; }

void WeightAverage::load(const NamedTensors& tensors) {
  at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> saved(tensors.begin(), tensors.end());
  for (const auto& [name, tensor] : average_) {
    const auto found = saved.find(name);
    if (found == saved.end() || found->second.sizes() != tensor.sizes())
      fail("the checkpoint holds no fitting moving average of ", name, "; resume with the configuration it came from");
    tensor.copy_(found->second);
  }
}

void WeightAverage::exchange() {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const at::Tensor kept = weights_[i].second.detach().clone();
    weights_[i].second.copy_(average_[i].second);
    average_[i].second.copy_(kept);
  }
}

WeightAverage::Swap::Swap(WeightAverage* average) : average_(average) {
  if (average_) average_->exchange();
}

WeightAverage::Swap::~Swap() {
  if (average_) average_->exchange();
}

}  // namespace sparsight
