// The confusion matrix that super-classes are found from: how often images of one class are taken for another.
// Daxberger et al. 2023, "Mobile V-MoEs", section 3; the paper counts predictions (hard). Letters: moe/axes.md; K here
// is classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// hard: one for the most probable class. soft: its probability for each class. top5: a fifth for each of the five most
// probable classes.
enum class ConfusionKind { hard, soft, top5 };

class ConfusionCounts {
 public:
  // Raises UsageError for top5 of five classes or fewer, all of which would always be among the five.
  ConfusionCounts(ConfusionKind kind, int64_t classes);

  // logits: [B,K] of a softmax; labels: [B] int64, others than 0..K-1 do not count. Equal logits count for the lower
  // class. Raises Error for logits that are not finite.
  void add(const at::Tensor& logits, const at::Tensor& labels);

  // [K,K], a row for each true class. hard: int64, rows sum to the images of the class. top5: float64, likewise. soft:
  // float64, the mean probabilities of the images of the class, so rows sum to 1; zeros for a class without images.
  at::Tensor counts() const;
  int64_t images() const;

 private:
  void add_image(const double* logits, int64_t truth);

  ConfusionKind kind_;
  int64_t classes_;
  std::vector<int64_t> votes_;   // [K,K] of hard, and of top5 in fifths
  std::vector<double> sums_;     // [K,K] of soft
  std::vector<int64_t> images_;  // [K] by true class
  std::vector<int64_t> order_;   // scratch of add_image
};

}  // namespace sparsight
