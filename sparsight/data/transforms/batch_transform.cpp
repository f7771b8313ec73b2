#include "sparsight/data/transforms/batch_transform.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/flip.h>
#include <ATen/ops/full.h>

namespace sparsight {
namespace {

// Gamma(shape, 1) by Marsaglia and Tsang (2000); shapes below 1 by their boost U^(1/shape).
double sample_gamma(double shape, RandomStream& random) {
  if (shape < 1) return sample_gamma(shape + 1, random) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

// Pastes a box of the partner images; returns the fraction of the image that remains.
double cut_and_paste(at::Tensor& images, double keep, RandomStream& random) {
  const int64_t h = images.size(2), w = images.size(3);
  const double side = std::sqrt(1 - keep);
  const int64_t half_height = std::llround(static_cast<double>(h) * side) / 2;
  const int64_t half_width = std::llround(static_cast<double>(w) * side) / 2;
  const int64_t y = random.below(h), x = random.below(w);
  const int64_t top = std::max<int64_t>(0, y - half_height), bottom = std::min(h, y + half_height);
  const int64_t left = std::max<int64_t>(0, x - half_width), right = std::min(w, x + half_width);
  const at::Tensor box = images.slice(2, top, bottom).slice(3, left, right);
  box.copy_(at::flip(box, {0}));
  return 1 - static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(h * w);
}

}  // namespace

double sample_beta(double alpha, RandomStream& random) {
  const double a = sample_gamma(alpha, random), b = sample_gamma(alpha, random);
  return a + b > 0 ? a / (a + b) : 0.5;
}

BatchTransform::BatchTransform(const TransformOptions& options, int64_t classes)
    : mixup_(options.mixup), cutmix_(options.cutmix), label_smoothing_(options.label_smoothing), classes_(classes) {}

void BatchTransform::operator()(Batch& batch, RandomStream& random) const {
  if (mixup_ == 0 && cutmix_ == 0 && label_smoothing_ == 0) return;
  const double off = label_smoothing_ / static_cast<double>(classes_), on = 1 - label_smoothing_ + off;
  at::Tensor targets = at::full({batch.labels.size(0), classes_}, off, at::kFloat);
  if (batch.label_sets.defined())
    targets.masked_fill_(batch.label_sets, on);
  else
    targets.scatter_(1, batch.labels.unsqueeze(1), on);
  if (mixup_ > 0 || cutmix_ > 0) {
    const bool cut = cutmix_ > 0 && (mixup_ == 0 || random.uniform() < 0.5);
    double keep = sample_beta(cut ? cutmix_ : mixup_, random);
    if (cut) {
      keep = cut_and_paste(batch.images, keep, random);
    } else {
      batch.images = batch.images.lerp(at::flip(batch.images, {0}), 1 - keep);
    }
    targets = targets.lerp(at::flip(targets, {0}), 1 - keep);
    batch.mixed = true;
  }
  batch.targets = targets;
}

}  // namespace sparsight
