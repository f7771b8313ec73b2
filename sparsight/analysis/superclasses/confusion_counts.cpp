#include "sparsight/analysis/superclasses/confusion_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ops/tensor.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr int64_t kVotesOfTop5 = 5;

}  // namespace

ConfusionCounts::ConfusionCounts(ConfusionKind kind, int64_t classes)
    : kind_(kind), classes_(classes), images_(static_cast<size_t>(classes)), order_(static_cast<size_t>(classes)) {
  if (kind == ConfusionKind::top5 && classes <= kVotesOfTop5)
    fail_usage("a top5 confusion of ", classes, " classes says nothing: all are among the five; use hard or soft");
  const auto cells = static_cast<size_t>(classes * classes);
  if (kind == ConfusionKind::soft)
    sums_.resize(cells);
  else
    votes_.resize(cells);
}

void ConfusionCounts::add_image(const double* logits, int64_t truth) {
  const auto row = static_cast<size_t>(truth * classes_);
  if (kind_ == ConfusionKind::soft) {
    const double largest = *std::max_element(logits, logits + classes_);
    double sum = 0;
    for (int64_t k = 0; k < classes_; ++k) sum += std::exp(logits[k] - largest);
    for (int64_t k = 0; k < classes_; ++k) sums_[row + static_cast<size_t>(k)] += std::exp(logits[k] - largest) / sum;
    return;
  }
  const int64_t votes = kind_ == ConfusionKind::hard ? 1 : kVotesOfTop5;
  std::iota(order_.begin(), order_.end(), 0);
  std::partial_sort(order_.begin(), order_.begin() + votes, order_.end(),
                    [&](int64_t a, int64_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  for (int64_t i = 0; i < votes; ++i) ++votes_[row + static_cast<size_t>(order_[static_cast<size_t>(i)])];
}

void ConfusionCounts::add(const at::Tensor& logits, const at::Tensor& labels) {
  SPARSIGHT_CHECK(logits.dim() == 2 && logits.size(1) == classes_ && labels.dim() == 1);
  const at::Tensor values = logits.detach().to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor truths = labels.to(at::kCPU, at::kLong).contiguous();
  const double* value = values.const_data_ptr<double>();
  for (int64_t i = 0; i < truths.numel(); ++i, value += classes_) {
    const int64_t truth = truths.const_data_ptr<int64_t>()[i];
    if (truth < 0 || truth >= classes_) continue;
    if (!std::all_of(value, value + classes_, [](double logit) { return std::isfinite(logit); }))
      fail("the model's logits of an image are not finite; the checkpoint is damaged or its training failed");
    ++images_[static_cast<size_t>(truth)];
    add_image(value, truth);
  }
}

at::Tensor ConfusionCounts::counts() const {
  if (kind_ == ConfusionKind::hard) return at::tensor(votes_, at::kLong).view({classes_, classes_});
  std::vector<double> table(static_cast<size_t>(classes_ * classes_));
  for (size_t i = 0; i < table.size(); ++i) {
    const auto images = static_cast<double>(images_[i / static_cast<size_t>(classes_)]);
    if (kind_ == ConfusionKind::top5)
      table[i] = static_cast<double>(votes_[i]) / kVotesOfTop5;
    else
      table[i] = images > 0 ? sums_[i] / images : 0;
  }
  return at::tensor(table, at::kDouble).view({classes_, classes_});
}

int64_t ConfusionCounts::images() const { return std::accumulate(images_.begin(), images_.end(), int64_t{0}); }

}  // namespace sparsight
