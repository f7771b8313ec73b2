#include "sparsight/eval/confused_images.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/argmax.h>
#include <ATen/ops/gather.h>

#include "sparsight/core/error.h"

namespace sparsight {

void ConfusedImages::observe(const Batch& batch, const ModelOutput& output) {
  if (batch.label_sets.defined()) return;
  const at::Tensor logits = output.logits.to(at::kCPU, at::kDouble);
  const at::Tensor guesses = output.logits.argmax(1).to(at::kCPU, at::kLong).contiguous();
  const at::Tensor probabilities = class_probabilities(logits, task_).gather(1, guesses.unsqueeze(1)).contiguous();
  const at::Tensor truths = batch.labels.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor indices = batch.indices.to(at::kCPU, at::kLong).contiguous();
  SPARSIGHT_CHECK(std::ssize(batch.ids) == truths.numel() && indices.numel() == truths.numel());
  for (int64_t i = 0; i < truths.numel(); ++i) {
    const int64_t truth = truths.const_data_ptr<int64_t>()[i], guess = guesses.const_data_ptr<int64_t>()[i];
    if (truth == guess || truth < 0 || truth >= logits.size(1)) continue;
    const double probability = probabilities.const_data_ptr<double>()[i];
    ConfusedCell& cell = cells_[{truth, guess}];
    cell.truth = truth, cell.predicted = guess;
    ++cell.images;
    keep(cell, {indices.const_data_ptr<int64_t>()[i], std::isfinite(probability) ? probability : 0,
                batch.ids[static_cast<size_t>(i)]});
  }
}

void ConfusedImages::keep(ConfusedCell& cell, ConfusedImage image) const {
  const auto comes_first = [](const ConfusedImage& a, const ConfusedImage& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.index < b.index;
  };
  const auto place = std::ranges::upper_bound(cell.worst, image, comes_first);
  if (place == cell.worst.end() && cell.worst.size() == kMaxImages) return;
  cell.worst.insert(place, std::move(image));
  if (cell.worst.size() > kMaxImages) cell.worst.pop_back();
}

std::vector<ConfusedCell> ConfusedImages::cells() const {
  std::vector<ConfusedCell> list;
  for (const auto& [classes, cell] : cells_) list.push_back(cell);
  std::ranges::stable_sort(list, [](const ConfusedCell& a, const ConfusedCell& b) { return a.images > b.images; });
  return list;
}

}  // namespace sparsight
