// Which images a model takes for another class. Letters: moe/axes.md; K here is classes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/eval/observer.h"
#include "sparsight/eval/task_loss.h"

namespace sparsight {

struct ConfusedImage {
  int64_t index = 0;       // in the split
  double probability = 0;  // of the predicted class
  std::string id;          // Sample::id
};

// A cell of the confusion matrix beside its diagonal.
struct ConfusedCell {
  int64_t truth = 0, predicted = 0;  // classes
  int64_t images = 0;
  std::vector<ConfusedImage> worst;  // at most kMaxImages: the most probable first, then by index
};

// Keeps the images of each cell of which the model is most certain. Nothing of multi-label data, whose images have no
// class of their own. Memory: a cell for each pair of classes that occurs.
class ConfusedImages : public EvaluationObserver {
 public:
  explicit ConfusedImages(TaskLoss task) : task_(task) {}
  void observe(const Batch& batch, const ModelOutput& output) override;

  // In the order of Confusions::list(): the most frequent first, then in order of class.
  std::vector<ConfusedCell> cells() const;

  static constexpr size_t kMaxImages = 12;  // of a cell

 private:
  void keep(ConfusedCell& cell, ConfusedImage image) const;

  TaskLoss task_;
  std::map<std::pair<int64_t, int64_t>, ConfusedCell> cells_;  // by (class, predicted class)
};

}  // namespace sparsight
