// Accuracy by class and domain: if a feature is correlated with the label in training, the rare combinations show
// whether a model learned the label or the feature. With one domain it is the accuracy by class. Letters: moe/axes.md;
// K here is classes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/core/options.h"

namespace sparsight {

class CellAccuracy {
 public:
  // Any number of classes and domains: only combinations that have images take memory.
  CellAccuracy(std::vector<std::string> classes, std::vector<std::string> domains);

  // logits: [B,K]; labels, domains: [B] int64.
  void add(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& domains);

  // [{"class", "domain", "images", "accuracy"}] of the cells that have images, in order of class and domain. accuracy:
  // 0 to 1.
  Json cells() const;

 private:
  std::vector<std::string> classes_, domains_;
  struct Counts {
    int64_t images = 0, correct = 0;
  };
  std::map<int64_t, Counts> counts_;  // by class * domains + domain
};

// The lowest accuracy of `cells`; null without any.
Json worst_cell(const Json& cells);

}  // namespace sparsight
