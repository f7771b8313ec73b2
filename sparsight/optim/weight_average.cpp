#include "sparsight/optim/weight_average.h"

#include <algorithm>
#include <map>

#include <ATen/core/grad_mode.h>

namespace sparsight {

AverageRule exponential_average(double decay) {
  return {"ema", [decay](int64_t updates) {
            const double count = static_cast<double>(updates);
            return 1 - std::min(decay, (1 + count) / (10 + count));
          }};
}

AverageRule mean_from(int64_t start, int64_t every) {
  SPARSIGHT_CHECK(start >= 0 && every > 0);
  return {"swa", [start, every](int64_t updates) {
            if (updates < start) return 1.0;
            if ((updates - start) % every != 0) return 0.0;
            return 1.0 / static_cast<double>((updates - start) / every + 1);
          }};
}

WeightAverage::WeightAverage(NamedTensors weights, AverageRule rule)
    : weights_(std::move(weights)), rule_(std::move(rule)) {
  at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : weights_) average_.emplace_back(name, tensor.detach().clone());
  handed_over_.resize(weights_.size());
}

at::Tensor WeightAverage::delegate_average(const at::Tensor& weight) {
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!weights_[i].second.is_same(weight) || !weight.is_floating_point()) continue;
    handed_over_[i] = true;
    return average_[i].second;
  }
  return {};
}

void WeightAverage::update(int64_t updates) {
  at::NoGradGuard no_grad;
  const double share = rule_.share(updates);
  if (share == 0) return;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (handed_over_[i]) continue;
    if (weights_[i].second.is_floating_point() && share < 1) {
      average_[i].second.lerp_(weights_[i].second, share);
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
      fail("the checkpoint has no average of ", name, " with shape ", tensor.sizes(),
           "; resume with the configuration it was trained with");
    if (found->second.is_floating_point() && !found->second.isfinite().all().item<bool>())
      fail("the checkpoint's average of ", name, " is damaged: it has NaN or infinity; use another checkpoint");
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
