// Whether the probabilities of a classifier are what they say: the expected calibration error (Guo et al. 2017, "On
// calibration of modern neural networks", equation 3). Letters: moe/axes.md; K here is classes.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "sparsight/core/options.h"

namespace sparsight {

// Images by the probability of their predicted class, in kBins intervals of equal width. An upper end belongs to its
// interval.
class Calibration {
 public:
  static constexpr int64_t kBins = 15;

  // logits: [B,K]; labels: [B] int64; labels outside of 0..K-1, and logits that are not finite, do not count.
  void add(const at::Tensor& logits, const at::Tensor& labels);

  // {"ece", "bins": [{"images", "confidence", "accuracy"}]}: the mean over images of |accuracy - confidence| of their
  // interval, 0 to 1; the intervals that have images, with their means. Null without images.
  Json measures() const;

 private:
  std::array<int64_t, kBins> images_{}, correct_{};
  std::array<double, kBins> confidence_{};  // sums
};

}  // namespace sparsight
