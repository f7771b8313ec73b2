// Which classes a model takes for which others. Letters: moe/axes.md; K here is classes.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/core/options.h"

namespace sparsight {

class Confusions {
 public:
  explicit Confusions(std::vector<std::string> classes) : classes_(std::move(classes)) {}

  // logits: [B,K]; labels: [B] int64; labels outside of 0..K-1 do not count.
  void add(const at::Tensor& logits, const at::Tensor& labels);

  // [{"true", "predicted", "images", "of"}]: `images` of the class's `of` images were taken for the other class. The
  // most frequent first, then in order of class; at most kMaxListed, which is all pairs of up to 32 classes.
  Json list() const;

  static constexpr size_t kMaxListed = 1000;

 private:
  std::vector<std::string> classes_;
  std::map<std::pair<int64_t, int64_t>, int64_t> counts_;  // by (class, predicted class) where they differ
  std::map<int64_t, int64_t> images_;                      // by class
};

}  // namespace sparsight
