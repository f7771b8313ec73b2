#include "sparsight/eval/evaluate.h"

#include <algorithm>
#include <chrono>

#include "sparsight/analysis/calibration.h"
#include "sparsight/analysis/cell_accuracy.h"
#include "sparsight/analysis/confusions.h"
#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/machine.h"
#include "sparsight/core/progress.h"
#include "sparsight/eval/batch_message.h"
#include "sparsight/optim/precision.h"

namespace sparsight {

namespace {

// The counts that every evaluation makes.
class Counts : public EvaluationObserver {
 public:
  Counts(const DataInfo& data, int64_t classes, TaskLoss task)
      : classes_(classes),
        task_(task),
        multi_label_(data.multi_label),
        cells_(data.classes, data.domains),
        confusions_(data.classes) {}

  void observe(const Batch& batch, const ModelOutput& output) override {
    const int64_t count = batch.labels.size(0);
    loss_ += task_loss(output.logits, batch, task_).item<double>() * static_cast<double>(count);
    correct_ += count_correct(output.logits, batch.true_labels());
    images_ += count;
    if (multi_label_) {  // no image has a class of its own
      routing_.add(output.routings, at::full_like(batch.labels, -1), classes_);
      return;
    }
    cells_.add(output.logits, batch.labels, batch.domains);
    confusions_.add(output.logits, batch.labels);
    calibration_.add(output.logits, batch.labels);
    routing_.add(output.routings, batch.labels, classes_);
  }

  Evaluation evaluation() const {
    Evaluation result;
    result.images = images_;
    if (images_ > 0) {
      result.loss = loss_ / static_cast<double>(images_);
      result.accuracy = static_cast<double>(correct_) / static_cast<double>(images_);
    }
    result.multi_label = multi_label_;
    result.layers = routing_.layers();
    if (multi_label_) return result;
    result.class_expert = routing_.class_expert();
    result.cells = cells_.cells();
    result.confusions = confusions_.list();
    result.calibration = calibration_.measures();
    return result;
  }

 private:
  int64_t classes_, images_ = 0, correct_ = 0;
  TaskLoss task_;
  bool multi_label_;
  double loss_ = 0;
  CellAccuracy cells_;
  Confusions confusions_;
  Calibration calibration_;
  RoutingAccumulator routing_;
};

// An image of zeros like those of some rank, [1,C,H,W]; undefined where no rank has any. own: undefined without any.
at::Tensor black_image(const at::Tensor& own, dist::Group& group) {
  constexpr int64_t kAxes = 4;
  const at::Tensor sizes = own.defined() ? at::tensor(own.sizes(), at::kLong) : at::zeros({kAxes}, at::kLong);
  const at::Tensor largest = std::get<0>(group.all_gather(sizes).max(0));
  const auto* const size = largest.const_data_ptr<int64_t>();
  return size[0] == 0 ? at::Tensor() : at::zeros({1, size[1], size[2], size[3]});
}

// The next batches of all ranks and what the model makes of them, in order: of one process its next batch. images: how
// many there were before.
std::vector<EvaluatedBatch> next_batches(const Predictor& predict, Loader& loader, bool bf16, dist::Group& group,
                                         int64_t images, bool together) {
  std::optional<Batch> batch = loader.next();
  const int64_t count = batch ? batch->labels.size(0) : 0;
  const int64_t first = images + group.counts(count).before;
  EvaluatedBatch own;
  at::Tensor input = batch ? batch->images : at::Tensor();
  if (const at::Tensor black = together ? black_image(input, group) : at::Tensor(); !batch) input = black;
  if (input.defined()) {
    const AutocastScope autocast(bf16);
    own.output = predict({.images = input, .info = {.image = at::arange(first, first + input.size(0))}});
  }
  if (batch) own.batch = std::move(*batch);
  std::vector<EvaluatedBatch> all;
  if (group.size() == 1) {
    if (batch) all.push_back(std::move(own));
    return all;
  }
  for (const std::string& bytes : group.all_gather_bytes(batch ? to_bytes(own) : ""))
    if (!bytes.empty()) all.push_back(evaluated_batch_from(bytes));
  return all;
}

// Passes each batch and the model's output to the observers, up to the end or an interrupt.
void run_batches(const Predictor& predict, Loader& loader, bool bf16, const std::string& title,
                 const std::vector<EvaluationObserver*>& observers, dist::Group& group, bool together) {
  torch::NoGradGuard no_grad;
  int64_t images = 0;
  Progress progress(title, loader.data().size(), "images");
  loader.start(0, group.rank(), group.size());
  bool stopped = false;
  while (!stopped) {
    const std::vector<EvaluatedBatch> batches = next_batches(predict, loader, bf16, group, images, together);
    if (batches.empty()) break;
    for (const auto& [batch, output] : batches) {
      for (EvaluationObserver* observer : observers) observer->observe(batch, output);
      images += batch.labels.size(0);
      progress.add(batch.labels.size(0));
    }
    stopped = group.any(interrupted());
  }
  if (!stopped) progress.finish();
}

}  // namespace

Evaluation evaluate(const Predictor& predict, Loader& loader, int64_t classes, TaskLoss task, bool bf16,
                    const std::string& title, std::vector<EvaluationObserver*> observers, dist::Group& group,
                    bool together) {
  const auto start = std::chrono::steady_clock::now();
  Counts counts(loader.data().info(), classes, task);
  observers.insert(observers.begin(), &counts);
  run_batches(predict, loader, bf16, title, observers, group, together);
  Evaluation result = counts.evaluation();
  result.unreadable = group.counts(loader.unreadable()).all;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Evaluation evaluate(const Predictor& predict, Loader& loader, int64_t classes, TaskLoss task, bool bf16,
                    const std::string& title, std::vector<EvaluationObserver*> observers) {
  dist::Group alone;
  return evaluate(predict, loader, classes, task, bf16, title, std::move(observers), alone);
}

Json metrics_line(const Evaluation& evaluation, const std::string& split, const std::string& weights, int64_t step,
                  std::optional<int64_t> epoch) {
  Json line{{"kind", "eval"}, {"split", split}, {"step", step}};
  if (epoch) line["epoch"] = *epoch;
  if (evaluation.multi_label)
    line.update({{"precision_at_1", evaluation.accuracy}, {"fdr_at_1", 1 - evaluation.accuracy}});
  else
    line["accuracy"] = evaluation.accuracy;
  if (evaluation.router_accuracy) line["router_accuracy"] = *evaluation.router_accuracy;
  line.update({{"loss", evaluation.loss},
               {"images", evaluation.images},
               {"seconds", evaluation.seconds},
               {"images_per_s", static_cast<double>(evaluation.images) / std::max(1e-9, evaluation.seconds)},
               {"weights", weights},
               {"layers", evaluation.layers}});
  if (!evaluation.touched.is_null()) line["touched"] = evaluation.touched;
  if (evaluation.unreadable > 0) line["unreadable"] = evaluation.unreadable;
  if (!evaluation.class_expert.is_null()) line["class_expert"] = evaluation.class_expert;
  if (evaluation.peak_bytes > 0) line["peak_memory_mb"] = mebibytes(evaluation.peak_bytes);
  if (!evaluation.cells.is_null()) {
    line["cells"] = evaluation.cells;
    line["worst_cell"] = worst_cell(evaluation.cells);
    line["confusions"] = evaluation.confusions;
    line["calibration"] = evaluation.calibration;
  }
  return line;
}

}  // namespace sparsight
