// Evaluates a model on a dataset: accuracy, loss and expert load.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/data/loader.h"
#include "sparsight/dist/group.h"
#include "sparsight/eval/observer.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

struct Evaluation {
  int64_t images = 0;
  int64_t unreadable = 0;  // images that are not counted, since they cannot be read
  double loss = 0;         // mean task loss, auxiliary losses excluded
  double accuracy = 0;     // 0 to 1; of multi-label data precision@1
  bool multi_label = false;
  double seconds = 0;
  int64_t peak_bytes = 0;  // resident memory of the process at its peak; 0: the caller did not measure it
  std::optional<double> router_accuracy;  // of guided routers, mean over them (eval/router_measures.h)
  Json touched;       // parameters that images touched (analysis/touched_weights.h); null: not measured
  Json layers;        // expert statistics, one entry per MoE layer
  Json class_expert;  // {layer: [K][E] token counts}; null of multi-label data, as the three below
  Json cells;         // accuracy by class and domain (analysis/cell_accuracy.h)
  Json confusions;    // which classes were taken for which others (analysis/confusions.h)
  Json calibration;   // of the predicted probabilities (analysis/calibration.h)
};

// One pass in evaluation mode and without gradients. `title` labels the progress bar. After an interrupt it returns
// early with what was counted so far. `observers` see each batch.
// task: [train] task_loss.
Evaluation evaluate(const Predictor& predict, Loader& loader, int64_t classes, TaskLoss task, bool bf16,
                    const std::string& title, std::vector<EvaluationObserver*> observers = {});
// The same shared out over the ranks of a group: each of them has the result of one process, and its observers see
// every batch, without its images, and every output, without losses and taps. together: the ranks predict only
// together, since each has experts for the others; one that has no images left predicts for a black one.
Evaluation evaluate(const Predictor& predict, Loader& loader, int64_t classes, TaskLoss task, bool bf16,
                    const std::string& title, std::vector<EvaluationObserver*> observers, dist::Group& group,
                    bool together = false);

// The "eval" line of metrics.jsonl; of multi-label data it has precision_at_1 and fdr_at_1 instead of accuracy.
// weights: "model" or "ema". epoch: omitted if unknown.
Json metrics_line(const Evaluation& evaluation, const std::string& split, const std::string& weights, int64_t step,
                  std::optional<int64_t> epoch = std::nullopt);

}  // namespace sparsight
