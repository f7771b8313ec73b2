#include "sparsight/analysis/confusions.h"

#include <algorithm>

#include <ATen/ops/argmax.h>
#include <nlohmann/json.hpp>

namespace sparsight {

void Confusions::add(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor guesses = logits.argmax(1).to(at::kCPU, at::kLong).contiguous();
  const at::Tensor truths = labels.to(at::kCPU, at::kLong).contiguous();
  for (int64_t i = 0; i < truths.numel(); ++i) {
    const int64_t truth = truths.const_data_ptr<int64_t>()[i], guess = guesses.const_data_ptr<int64_t>()[i];
    if (truth < 0 || truth >= logits.size(1)) continue;
    ++images_[truth];
    if (truth != guess) ++counts_[{truth, guess}];
  }
}

Json Confusions::list() const {
  std::vector<std::pair<std::pair<int64_t, int64_t>, int64_t>> pairs(counts_.begin(), counts_.end());
  std::ranges::stable_sort(pairs, [](const auto& a, const auto& b) { return a.second > b.second; });
  if (pairs.size() > kMaxListed) pairs.resize(kMaxListed);
  const auto name = [&](int64_t k) {
    return k < std::ssize(classes_) ? classes_[static_cast<size_t>(k)] : std::to_string(k);
  };
  Json list = Json::array();
  for (const auto& [classes, images] : pairs)
    list.push_back({{"true", name(classes.first)},
                    {"predicted", name(classes.second)},
                    {"images", images},
                    {"of", images_.at(classes.first)}});
  return list;
}

}  // namespace sparsight
