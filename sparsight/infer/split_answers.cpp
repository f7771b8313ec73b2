#include "sparsight/infer/split_answers.h"

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"

namespace sparsight {
namespace {

class LogitsObserver : public EvaluationObserver {
 public:
  void observe(const Batch&, const ModelOutput& output) override {
    if (!at::isfinite(output.logits).all().item<bool>())
      fail("its logits on image ", images, " and later are not finite; its weights are damaged");
    images += output.logits.size(0);
    logits.push_back(output.logits.clone());
    for (const Routing& routing : output.routings) sampled = sampled || routing.sampled;
  }
  std::vector<at::Tensor> logits;
  int64_t images = 0;
  bool sampled = false;
};

}  // namespace

SplitAnswers split_answers(const LoadedModel& loaded, const CalibrationSplit& on, const std::string& title) {
  LogitsObserver seen;
  const auto loader = calibration_loader(loaded, on);
  SplitAnswers answers;
  answers.evaluation = evaluate([&](const ModelInput& input) { return loaded.forward(input); }, *loader,
                                loaded.shape.classes, loaded.task_loss, /*bf16=*/false, title, {&seen});
  if (interrupted()) fail("interrupted after ", seen.images, " images; nothing was written");
  if (seen.images == 0) fail("none of the images of the ", on.split, " split could be read; choose another --split");
  answers.logits = at::cat(seen.logits);
  answers.sampled = seen.sampled;
  return answers;
}

double class_agreement(const SplitAnswers& a, const SplitAnswers& b) {
  return a.logits.argmax(1).eq(b.logits.argmax(1)).to(torch::kDouble).mean().item<double>();
}

double largest_difference(const SplitAnswers& a, const SplitAnswers& b) {
  return (a.logits - b.logits).abs().max().item<double>();
}

}  // namespace sparsight
