#include "sparsight/eval/evaluate.h"

#include <chrono>

#include "sparsight/analysis/cell_accuracy.h"
#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/progress.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/optim/precision.h"

namespace sparsight {

Evaluation evaluate(ImageModel& model, Loader& loader, int64_t classes, bool bf16, const std::string& title,
                    const std::vector<EvaluationObserver*>& observers) {
  const auto start = std::chrono::steady_clock::now();
  torch::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  model.eval();
  Evaluation result;
  RoutingAccumulator routing;
  CellAccuracy cells(loader.data().info().classes, loader.data().info().domains);
  int64_t correct = 0;
  double loss = 0;
  Progress progress(title, loader.data().size(), "images");
  loader.start(0);
  while (std::optional<Batch> batch = loader.next()) {
    ModelOutput output;
    {
      AutocastScope autocast(bf16);
      output = model.forward(batch->images, StepRandom{}, {.first_image = result.images});
    }
    const int64_t count = batch->labels.size(0);
    loss += task_loss(output.logits, *batch).item<double>() * static_cast<double>(count);
    correct += count_correct(output.logits, batch->labels);
    cells.add(output.logits, batch->labels, batch->domains);
    result.images += count;
    routing.add(output.routings, batch->labels, classes);
    for (EvaluationObserver* observer : observers) observer->observe(*batch, output);
    progress.add(count);
    if (interrupted()) break;
  }
  if (!interrupted()) progress.finish();
  model.train(was_training);
  if (result.images > 0) {
    result.loss = loss / static_cast<double>(result.images);
    result.accuracy = static_cast<double>(correct) / static_cast<double>(result.images);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.layers = routing.layers();
  result.class_expert = routing.class_expert();
  result.cells = cells.cells();
  return result;
}

Json metrics_line(const Evaluation& evaluation, const std::string& split, const std::string& weights, int64_t step,
                  std::optional<int64_t> epoch) {
  Json line{{"kind", "eval"}, {"split", split}, {"step", step}};
  if (epoch) line["epoch"] = *epoch;
  line.update({{"loss", evaluation.loss},
               {"accuracy", evaluation.accuracy},
               {"images", evaluation.images},
               {"seconds", evaluation.seconds},
               {"weights", weights},
               {"layers", evaluation.layers},
               {"class_expert", evaluation.class_expert}});
  if (!evaluation.cells.is_null()) {
    line["cells"] = evaluation.cells;
    line["worst_cell"] = worst_cell(evaluation.cells);
  }
  return line;
}

}  // namespace sparsight
