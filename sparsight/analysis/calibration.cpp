#include "sparsight/analysis/calibration.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/max.h>
#include <ATen/ops/softmax.h>
#include <nlohmann/json.hpp>

namespace sparsight {

void Calibration::add(const at::Tensor& logits, const at::Tensor& labels) {
  const auto [confidence, guess] = logits.to(at::kCPU, at::kDouble).softmax(1).max(1);
  const at::Tensor truth = labels.to(at::kCPU, at::kLong).contiguous();
  for (int64_t i = 0; i < truth.numel(); ++i) {
    const double p = confidence.const_data_ptr<double>()[i];
    const int64_t label = truth.const_data_ptr<int64_t>()[i];
    if (label < 0 || label >= logits.size(1) || !std::isfinite(p)) continue;
    const auto bin = static_cast<size_t>(std::clamp<int64_t>(std::llround(std::ceil(p * kBins)) - 1, 0, kBins - 1));
    ++images_[bin];
    correct_[bin] += guess.const_data_ptr<int64_t>()[i] == label;
    confidence_[bin] += p;
  }
}

Json Calibration::measures() const {
  Json bins = Json::array();
  double gaps = 0, all = 0;
  for (size_t b = 0; b < images_.size(); ++b) {
    if (images_[b] == 0) continue;
    const auto images = static_cast<double>(images_[b]), correct = static_cast<double>(correct_[b]);
    bins.push_back({{"images", images_[b]}, {"confidence", confidence_[b] / images}, {"accuracy", correct / images}});
    gaps += std::abs(correct - confidence_[b]);
    all += images;
  }
  if (all == 0) return Json();
  return {{"ece", gaps / all}, {"bins", bins}};
}

}  // namespace sparsight
